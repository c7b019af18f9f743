/* kernels/emu/driver.cc: a CUDA driver over the kernel emulation, for tests without a GPU.
 *
 * Reads engine.h. Built as libcuda.so.1 in a folder of its own and used with ridge-probe
 * --cuda-lib, so that the same program, the same kernels' source and the same checks run as on a
 * GPU. Device memory is host memory; work runs when something waits for it. Times are a fixed cost
 * for each launch and thread: they exercise the arithmetic of a record and say nothing of any GPU.
 *
 * Environment: RIDGE_EMU_DEVICES (1), RIDGE_EMU_CC (90), RIDGE_EMU_MEMORY_MIB (2048),
 * RIDGE_EMU_CLOCK_KHZ (1000000, at which it runs), RIDGE_EMU_COMPUTE_MODE (0), RIDGE_EMU_NAME,
 * RIDGE_EMU_FAIL=call=code[,call=code] makes a call return an error, RIDGE_EMU_LOG=FILE notes which
 * kernels were launched, RIDGE_EMU_FAULT=KERNEL makes that kernel a fault after which nothing
 * works.
 */
// SPDX-License-Identifier: Apache-2.0
#include "../value.h"
#include "engine.h"
#include "emulate_sm90.h"

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

typedef int result;
typedef unsigned long long pointer;
enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    INVALID_DEVICE = 101,
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_TIMEOUT = 702,
    PEER_ENABLED = 704,
};

namespace
{

struct operation {
    enum { LAUNCH, COPY, SET, EVENT, GRAPH } kind;
    rg_emu_entry entry = nullptr;
    std::vector<unsigned char> params;
    int grid = 0, threads = 0;
    size_t shared = 0;
    bool cooperative = false;
    void *to = nullptr;
    const void *from = nullptr;
    size_t bytes = 0;
    unsigned char value = 0;
    struct event *mark = nullptr;
};

struct event {
    double ns = 0;
};

struct graph {
    std::vector<operation> operations;
};

struct stream {
    std::deque<operation> queue;
    graph *capture = nullptr;
    double ns = 0;
};

struct function {
    std::string name;
    const rg_emu_kernel *kernel;
};

struct context {
    int device;
};

int device_count()
{
    const char *text = getenv("RIDGE_EMU_DEVICES");
    return text ? atoi(text) : 1;
}

size_t memory_bytes()
{
    const char *text = getenv("RIDGE_EMU_MEMORY_MIB");
    return (size_t)(text ? atoll(text) : 2048) << 20;
}

/** Error that the environment asks for, 0 for none. */
result asked(const char *call)
{
    const char *text = getenv("RIDGE_EMU_FAIL");
    if (!text)
        return SUCCESS;
    const std::string wanted = std::string(call) + "=";
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : nullptr)
        if (strncmp(at, wanted.c_str(), wanted.size()) == 0)
            return atoi(at + wanted.size());
    return SUCCESS;
}

std::vector<stream *> streams;
std::map<void *, size_t> allocations;
std::map<std::string, function> functions;
size_t allocated;
context contexts[16];
bool faulted; /* a kernel hit an illegal address: nothing works any more */

/** Note which kernels ran with how much shared memory: RIDGE_EMU_LOG=FILE, a line a new pair. */
void note_launch(const function &f, size_t shared)
{
    static std::map<std::string, size_t> seen;
    const char *path = getenv("RIDGE_EMU_LOG");
    if (!path)
        return;
    auto found = seen.find(f.name);
    if (found != seen.end() && found->second >= shared)
        return;
    seen[f.name] = shared;
    if (FILE *log = fopen(path, "a")) {
        fprintf(log, "%s %d %zu\n", f.name.c_str(), f.kernel->threads, shared);
        fclose(log);
    }
}

bool run_one(stream *s, const operation &o)
{
    switch (o.kind) {
    case operation::LAUNCH: {
        const rg_emu_launch launch = {o.entry, o.params.data(), o.grid, o.threads, o.shared};
        s->ns += 2000.0 + 0.5 * o.grid * o.threads;
        return rg_emu_run(&launch, 1, o.cooperative);
    }
    case operation::COPY:
        memmove(o.to, o.from, o.bytes);
        s->ns += 1000.0 + (double)o.bytes / 16.0;
        break;
    case operation::SET:
        memset(o.to, o.value, o.bytes);
        break;
    case operation::EVENT:
        o.mark->ns = s->ns;
        break;
    case operation::GRAPH:
        break;
    }
    return true;
}

/** Cooperative launches at the heads of all streams, at once: they may wait for each other. */
bool run_heads()
{
    std::vector<rg_emu_launch> launches;
    for (stream *s : streams)
        if (!s->queue.empty()) {
            const operation &o = s->queue.front();
            launches.push_back({o.entry, o.params.data(), o.grid, o.threads, o.shared});
            s->ns += 2000.0 + 0.5 * o.grid * o.threads;
        }
    if (launches.empty())
        return true;
    const bool fine = rg_emu_run(launches.data(), launches.size(), true);
    for (stream *s : streams)
        if (!s->queue.empty())
            s->queue.pop_front();
    return fine;
}

result drain()
{
    if (faulted)
        return ILLEGAL_ADDRESS;
    for (bool left = true; left;) {
        left = false;
        for (stream *s : streams)
            while (!s->queue.empty() && !s->queue.front().cooperative) {
                if (!run_one(s, s->queue.front()))
                    return LAUNCH_TIMEOUT;
                s->queue.pop_front();
            }
        for (stream *s : streams)
            left = left || !s->queue.empty();
        if (left && !run_heads())
            return LAUNCH_TIMEOUT;
    }
    return SUCCESS;
}

result enqueue(stream *s, operation o)
{
    if (!s)
        return INVALID_VALUE;
    if (s->capture)
        s->capture->operations.push_back(std::move(o));
    else
        s->queue.push_back(std::move(o));
    return SUCCESS;
}

} // namespace

#define CALL(name)                          \
    if (const result asked_ = asked(#name)) \
        return asked_;

extern "C" {

extern const int rg_emulated_driver;
const int rg_emulated_driver = 1;

result cuInit(unsigned)
{
    CALL(cuInit)
    return SUCCESS;
}
result cuDriverGetVersion(int *version)
{
    *version = 13000;
    return SUCCESS;
}
result cuGetErrorName(result, const char **name)
{
    *name = "EMULATED_ERROR";
    return SUCCESS;
}
result cuGetErrorString(result, const char **text)
{
    *text = "reported by the emulated driver";
    return SUCCESS;
}
result cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *base, const uint64_t *dims,
                              const uint64_t *strides, const uint32_t *box, const uint32_t *, int,
                              int swizzle, int, int)
{
    const uint32_t element_bytes = type == 9 ? 2 : 1; /* bf16 and bytes are what ridge asks for */
    if (rank != 2 || (type != 9 && type != 0) || box[0] * element_bytes > 128)
        return INVALID_VALUE;
    const rg_emu_tensor_map m = {(const unsigned char *)base,
                                 dims[0],
                                 dims[1],
                                 strides[0],
                                 box[0],
                                 box[1],
                                 element_bytes,
                                 swizzle == 3};
    memcpy(map, &m, sizeof m);
    return SUCCESS;
}
result cuDeviceGetCount(int *count)
{
    CALL(cuDeviceGetCount)
    *count = device_count();
    return SUCCESS;
}
result cuDeviceGet(int *device, int index)
{
    *device = index;
    return index < device_count() ? SUCCESS : INVALID_DEVICE;
}
result cuDeviceGetName(char *name, int size, int)
{
    const char *given = getenv("RIDGE_EMU_NAME");
    snprintf(name, (size_t)size, "%s", given ? given : "ridge CPU emulation");
    return SUCCESS;
}
result cuDeviceGetUuid(unsigned char *uuid, int device)
{
    for (int i = 0; i < 16; i++)
        uuid[i] = (unsigned char)(i + device);
    return SUCCESS;
}
result cuDeviceGetPCIBusId(char *text, int size, int device)
{
    snprintf(text, (size_t)size, "0000:%02x:00.0", device + 1);
    return SUCCESS;
}
result cuDeviceGetAttribute(int *value, int attribute, int)
{
    const char *cc = getenv("RIDGE_EMU_CC");
    const int version = cc ? atoi(cc) : 90;
    const char *mode = getenv("RIDGE_EMU_COMPUTE_MODE"), *khz = getenv("RIDGE_EMU_CLOCK_KHZ");
    const std::map<int, int> figures = {{13, khz ? atoi(khz) : 1000000},
                                        {16, 4},
                                        {18, 0},
                                        {20, mode ? atoi(mode) : 0},
                                        {32, 1},
                                        {36, 1000000},
                                        {37, 4096},
                                        {38, 1 << 16},
                                        {39, 2048},
                                        {75, version / 10},
                                        {76, version % 10},
                                        {81, 233472},
                                        {82, 65536},
                                        {95, 1},
                                        {97, 232448},
                                        {106, 32},
                                        {133, 0}};
    auto found = figures.find(attribute);
    if (found == figures.end())
        return INVALID_VALUE;
    *value = found->second;
    return SUCCESS;
}
result cuDeviceTotalMem_v2(size_t *bytes, int)
{
    *bytes = memory_bytes();
    return SUCCESS;
}
result cuDevicePrimaryCtxRetain(context **out, int device)
{
    CALL(cuDevicePrimaryCtxRetain)
    contexts[device].device = device;
    *out = &contexts[device];
    return SUCCESS;
}
result cuDevicePrimaryCtxRelease_v2(int)
{
    return SUCCESS;
}
result cuCtxSetCurrent(context *)
{
    return SUCCESS;
}
result cuCtxSynchronize(void)
{
    return drain();
}
result cuCtxEnablePeerAccess(context *, unsigned)
{
    return SUCCESS;
}
result cuDeviceCanAccessPeer(int *can, int, int)
{
    *can = 1;
    return SUCCESS;
}
result cuMemGetInfo_v2(size_t *unused, size_t *total)
{
    *total = memory_bytes();
    *unused = *total - allocated;
    return SUCCESS;
}
result cuMemAlloc_v2(pointer *out, size_t bytes)
{
    CALL(cuMemAlloc_v2)
    if (allocated + bytes > memory_bytes())
        return OUT_OF_MEMORY;
    void *memory = aligned_alloc(256, (bytes / 256 + 1) * 256);
    memset(memory, 0xee, (bytes / 256 + 1) * 256);
    allocations[memory] = bytes;
    allocated += bytes;
    *out = (pointer)(uintptr_t)memory;
    return SUCCESS;
}
result cuMemFree_v2(pointer p)
{
    void *memory = (void *)(uintptr_t)p;
    auto found = allocations.find(memory);
    if (found == allocations.end())
        return INVALID_VALUE;
    drain();
    allocated -= found->second;
    allocations.erase(found);
    free(memory);
    return SUCCESS;
}
result cuMemHostAlloc(void **out, size_t bytes, unsigned)
{
    *out = malloc(bytes);
    return *out ? SUCCESS : OUT_OF_MEMORY;
}
result cuMemFreeHost(void *memory)
{
    free(memory);
    return SUCCESS;
}
result cuMemcpyHtoD_v2(pointer to, const void *from, size_t bytes)
{
    const result drained = drain();
    memcpy((void *)(uintptr_t)to, from, bytes);
    return drained;
}
result cuMemcpyDtoH_v2(void *to, pointer from, size_t bytes)
{
    const result drained = drain();
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return drained;
}
static result copy(void *to, const void *from, size_t bytes, stream *s)
{
    operation o{};
    o.kind = operation::COPY;
    o.to = to;
    o.from = from;
    o.bytes = bytes;
    return enqueue(s, std::move(o));
}
result cuMemcpyHtoDAsync_v2(pointer to, const void *from, size_t bytes, stream *s)
{
    return copy((void *)(uintptr_t)to, from, bytes, s);
}
result cuMemcpyDtoHAsync_v2(void *to, pointer from, size_t bytes, stream *s)
{
    return copy(to, (const void *)(uintptr_t)from, bytes, s);
}
result cuMemcpyDtoDAsync_v2(pointer to, pointer from, size_t bytes, stream *s)
{
    return copy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes, s);
}
result cuMemcpyPeerAsync(pointer to, context *, pointer from, context *, size_t bytes, stream *s)
{
    return copy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes, s);
}
result cuMemsetD8Async(pointer to, unsigned char value, size_t bytes, stream *s)
{
    operation o{};
    o.kind = operation::SET;
    o.to = (void *)(uintptr_t)to;
    o.value = value;
    o.bytes = bytes;
    return enqueue(s, std::move(o));
}
result cuModuleLoadData(void **module, const void *)
{
    CALL(cuModuleLoadData)
    *module = (void *)&functions;
    return SUCCESS;
}
result cuModuleUnload(void *)
{
    return SUCCESS;
}
result cuModuleGetFunction(function **out, void *, const char *name)
{
    const rg_emu_kernel *kernel = rg_emu_find(name);
    if (!kernel)
        return NOT_FOUND;
    functions[name] = {name, kernel};
    *out = &functions[name];
    return SUCCESS;
}
result cuFuncGetAttribute(int *value, int attribute, function *)
{
    *value = attribute == 6 ? 90 : 0;
    return SUCCESS;
}
result cuFuncSetAttribute(function *, int, int)
{
    return SUCCESS;
}
result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, function *, int threads,
                                                   size_t shared)
{
    const int by_threads = 2048 / threads, by_shared = (int)(233472 / (shared + 1024));
    *blocks = by_threads < by_shared ? by_threads : by_shared;
    return SUCCESS;
}
result cuStreamCreate(stream **out, unsigned)
{
    *out = new stream();
    streams.push_back(*out);
    return SUCCESS;
}
result cuStreamDestroy_v2(stream *s)
{
    drain();
    for (size_t i = 0; i < streams.size(); i++)
        if (streams[i] == s)
            streams.erase(streams.begin() + (long)i);
    delete s;
    return SUCCESS;
}
result cuStreamSynchronize(stream *)
{
    CALL(cuStreamSynchronize)
    return drain();
}
result cuStreamBeginCapture_v2(stream *s, int)
{
    CALL(cuStreamBeginCapture_v2)
    s->capture = new graph();
    return SUCCESS;
}
result cuStreamEndCapture(stream *s, graph **out)
{
    *out = s->capture;
    s->capture = nullptr;
    return SUCCESS;
}
result cuGraphInstantiateWithFlags(graph **out, graph *g, unsigned long long)
{
    *out = new graph(*g);
    return SUCCESS;
}
result cuGraphLaunch(graph *g, stream *s)
{
    for (const operation &o : g->operations)
        enqueue(s, o);
    return SUCCESS;
}
result cuGraphDestroy(graph *g)
{
    delete g;
    return SUCCESS;
}
result cuGraphExecDestroy(graph *g)
{
    drain();
    delete g;
    return SUCCESS;
}
result cuEventCreate(event **out, unsigned)
{
    *out = new event();
    return SUCCESS;
}
result cuEventDestroy_v2(event *e)
{
    drain();
    delete e;
    return SUCCESS;
}
result cuEventRecord(event *e, stream *s)
{
    operation o{};
    o.kind = operation::EVENT;
    o.mark = e;
    return enqueue(s, std::move(o));
}
result cuEventSynchronize(event *)
{
    return drain();
}
result cuEventElapsedTime(float *ms, event *from, event *to)
{
    *ms = (float)((to->ns - from->ns) / 1e6);
    return SUCCESS;
}
static result launch(function *f, unsigned grid, unsigned threads, unsigned shared, stream *s,
                     void **arguments, bool cooperative)
{
    if ((int)threads != f->kernel->threads) {
        fprintf(stderr, "emulation: %s launched with %u threads, built for %d\n", f->name.c_str(),
                threads, f->kernel->threads);
        return INVALID_VALUE;
    }
    note_launch(*f, shared);
    const char *fault = getenv("RIDGE_EMU_FAULT");
    faulted = faulted || (fault && f->name == fault);
    if (faulted)
        return ILLEGAL_ADDRESS;
    operation o{};
    o.kind = operation::LAUNCH;
    o.entry = f->kernel->entry;
    o.params.assign((const unsigned char *)arguments[0],
                    (const unsigned char *)arguments[0] + f->kernel->params_bytes);
    o.grid = (int)grid;
    o.threads = (int)threads;
    o.shared = shared;
    o.cooperative = cooperative;
    return enqueue(s, std::move(o));
}
result cuLaunchKernel(function *f, unsigned grid, unsigned, unsigned, unsigned threads, unsigned,
                      unsigned, unsigned shared, stream *s, void **arguments, void **)
{
    CALL(cuLaunchKernel)
    return launch(f, grid, threads, shared, s, arguments, false);
}
result cuLaunchCooperativeKernel(function *f, unsigned grid, unsigned, unsigned, unsigned threads,
                                 unsigned, unsigned, unsigned shared, stream *s, void **arguments)
{
    return launch(f, grid, threads, shared, s, arguments, true);
}

} // extern "C"

/* kernels/emu/emulate.cc: fibres, barriers and asynchronous copies of the emulated device.
 *
 * Reads emulate.h. One operating-system thread; a fibre gives way only at barriers, exchanges and
 * flag reads, in a fixed round, so every run is the same.
 */
// SPDX-License-Identifier: Apache-2.0
#include "../value.h"
#include "emulate.h"
#include "engine.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unordered_map>
#include <vector>

namespace
{

struct pending_copy {
    void *to;
    const void *from;
    int bytes, group;
    bool on;
};

struct barrier {
    int live = 0, arrived = 0;
    unsigned epoch = 0;
};

struct warp {
    barrier gate;
    int round[32] = {};
    uint32_t slots[2][32][RG_EMU_SLOT_WORDS];
};

struct block {
    barrier gate;
    std::vector<warp> warps;
    std::vector<barrier> groups;
    unsigned char *shared = nullptr;
};

struct fibre {
    rg_emu_place place;
    block *home;
    void *stack_pointer;
    bool done;
    int group_open;
    rg_emu_entry entry;
    const void *params;
    std::vector<pending_copy> copies;
};

constexpr size_t stack_bytes = 128 << 10;
void *main_stack_pointer;
fibre *running;
uint64_t clock_count, progress_count;

} // namespace

rg_emu_place *rg_emu_here;

static rg_emu_break broken_by_environment()
{
    static const char *const names[] = {"", "sync", "copy", "swizzle", "wait", "flag"};
    const char *text = getenv("RIDGE_EMU_BREAK");
    for (int i = 1; text && i < 6; i++)
        if (std::string(text) == names[i])
            return (rg_emu_break)i;
    return RG_EMU_WHOLE;
}
rg_emu_break rg_emu_broken = broken_by_environment();

/* Save the callee-saved registers on the old stack, take those of the new one. */
extern "C" void rg_emu_switch(void **save, void *restore);
#if defined(__x86_64__)
asm(".text\n.globl rg_emu_switch\n.type rg_emu_switch,@function\nrg_emu_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
    ".size rg_emu_switch,.-rg_emu_switch\n");
enum { SWITCH_SAVED = 6 };
#elif defined(__aarch64__)
asm(".text\n.globl rg_emu_switch\n.type rg_emu_switch,%function\nrg_emu_switch:\n"
    "sub sp,sp,#160\nstp x19,x20,[sp,#0]\nstp x21,x22,[sp,#16]\nstp x23,x24,[sp,#32]\n"
    "stp x25,x26,[sp,#48]\nstp x27,x28,[sp,#64]\nstp x29,x30,[sp,#80]\n"
    "stp d8,d9,[sp,#96]\nstp d10,d11,[sp,#112]\nstp d12,d13,[sp,#128]\nstp d14,d15,[sp,#144]\n"
    "mov x9,sp\nstr x9,[x0]\nmov sp,x1\n"
    "ldp x19,x20,[sp,#0]\nldp x21,x22,[sp,#16]\nldp x23,x24,[sp,#32]\n"
    "ldp x25,x26,[sp,#48]\nldp x27,x28,[sp,#64]\nldp x29,x30,[sp,#80]\n"
    "ldp d8,d9,[sp,#96]\nldp d10,d11,[sp,#112]\nldp d12,d13,[sp,#128]\nldp d14,d15,[sp,#144]\n"
    "add sp,sp,#160\nret\n");
#else
#error "the kernel emulation needs x86-64 or aarch64"
#endif

static void leave(barrier *gate)
{
    gate->live--;
    if (gate->live > 0 && gate->arrived == gate->live) {
        gate->arrived = 0;
        gate->epoch++;
    }
    progress_count++;
}

static void fibre_main()
{
    fibre *self = running;
    self->entry(self->params);
    self->done = true;
    self->copies.clear();
    leave(&self->home->gate);
    leave(&self->home->warps[self->place.tid / 32].gate);
    leave(&self->home->groups[self->place.tid / 128]);
    void *unused;
    rg_emu_switch(&unused, main_stack_pointer);
    abort();
}

void rg_emu_yield()
{
    rg_emu_switch(&running->stack_pointer, main_stack_pointer);
}

void rg_emu_progress()
{
    progress_count++;
}

static void wait_at(barrier *gate)
{
    const unsigned epoch = gate->epoch;
    if (++gate->arrived == gate->live) {
        gate->arrived = 0;
        gate->epoch++;
        progress_count++;
        return;
    }
    while (gate->epoch == epoch)
        rg_emu_yield();
}

void rg_emu_block_barrier()
{
    if (rg_emu_broken != RG_EMU_NO_SYNC)
        wait_at(&running->home->gate);
}

void rg_emu_group_barrier()
{
    wait_at(&running->home->groups[running->place.tid / 128]);
}

void rg_emu_warp_barrier()
{
    wait_at(&running->home->warps[running->place.tid / 32].gate);
}

uint32_t (*rg_emu_warp_slots())[RG_EMU_SLOT_WORDS]
{
    warp &w = running->home->warps[running->place.tid / 32];
    return w.slots[w.round[running->place.tid & 31] & 1];
}

void rg_emu_warp_next_round()
{
    running->home->warps[running->place.tid / 32].round[running->place.tid & 31]++;
}

void rg_emu_copy(void *shared, const void *global, int bytes, bool on)
{
    running->copies.push_back({shared, global, bytes, running->group_open, on});
}

void rg_emu_copy_commit()
{
    running->group_open++;
}

void rg_emu_copy_wait(int left)
{
    left += rg_emu_broken == RG_EMU_LATE_COPY;
    size_t kept = 0;
    std::vector<pending_copy> &copies = running->copies;
    for (const pending_copy &c : copies) {
        if (c.group >= running->group_open - left) {
            copies[kept++] = c;
        } else if (c.on) {
            memcpy(c.to, c.from, (size_t)c.bytes);
        } else {
            memset(c.to, 0, (size_t)c.bytes);
        }
    }
    copies.resize(kept);
}

uint64_t rg_emu_clock()
{
    return clock_count += 100;
}

static std::unordered_map<std::string, rg_emu_kernel> &registry()
{
    static std::unordered_map<std::string, rg_emu_kernel> kernels;
    return kernels;
}

rg_emu_registration::rg_emu_registration(const char *name, rg_emu_entry entry, int threads,
                                         size_t params_bytes)
{
    registry()[name] = {entry, threads, params_bytes};
}

const rg_emu_kernel *rg_emu_find(const char *name)
{
    auto found = registry().find(name);
    return found == registry().end() ? nullptr : &found->second;
}

static unsigned char *stack_pool(size_t count)
{
    static unsigned char *pool;
    static size_t pool_count;
    if (count > pool_count) {
        if (pool)
            munmap(pool, pool_count * stack_bytes);
        pool = (unsigned char *)mmap(nullptr, count * stack_bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (pool == MAP_FAILED) {
            fprintf(stderr, "emulation: no memory for %zu fibres\n", count);
            abort();
        }
        pool_count = count;
    }
    return pool;
}

static void start_fibre(fibre *f, unsigned char *stack)
{
    void **top = (void **)(stack + stack_bytes);
#if defined(__x86_64__)
    *--top = nullptr; /* keeps the stack 16-byte aligned at entry, as after a call */
    *--top = (void *)fibre_main;
    top -= SWITCH_SAVED;
    memset(top, 0, SWITCH_SAVED * sizeof(void *));
#else
    top -= 20;
    memset(top, 0, 160);
    top[11] = (void *)fibre_main;
#endif
    f->stack_pointer = top;
    f->done = false;
    f->group_open = 0;
    f->copies.clear();
}

/** Run each fibre of a block once; how many of them ended. */
static size_t run_once(fibre *first, fibre *last)
{
    size_t ended = 0;
    for (fibre *f = first; f != last; f++) {
        if (f->done)
            continue;
        running = f;
        rg_emu_here = &f->place;
        rg_emu_switch(&main_stack_pointer, f->stack_pointer);
        ended += f->done;
    }
    return ended;
}

/** Run some whole blocks until all their fibres are done; false when none can move any more. A
 * block runs on until it is stuck before the next one gets a turn: blocks are as far apart as their
 * waits allow, so that a wait that is missing shows. */
static bool run_blocks(std::vector<fibre> &fibres)
{
    size_t left = fibres.size();
    unsigned idle_rounds = 0;
    while (left > 0) {
        const uint64_t before = progress_count;
        for (size_t first = 0, last = 0; first < fibres.size(); first = last) {
            while (last < fibres.size() && fibres[last].home == fibres[first].home)
                last++;
            uint64_t seen;
            do {
                seen = progress_count;
                left -= run_once(fibres.data() + first, fibres.data() + last);
            } while (progress_count != seen);
        }
        idle_rounds = progress_count == before ? idle_rounds + 1 : 0;
        if (idle_rounds > 1000)
            return false;
    }
    return true;
}

static void make_block(block *b, fibre *fibres, unsigned char *stacks, const rg_emu_launch &launch,
                       int bid)
{
    const size_t shared_bytes = (launch.shared_bytes / 1024 + 1) * 1024;
    b->shared = (unsigned char *)aligned_alloc(1024, shared_bytes);
    memset(b->shared, 0xff, shared_bytes);
    b->gate.live = launch.threads;
    b->warps.assign((size_t)(launch.threads + 31) / 32, warp());
    b->groups.assign((size_t)(launch.threads + 127) / 128, barrier());
    for (int t = 0; t < launch.threads; t++) {
        fibre &f = fibres[t];
        f.home = b;
        f.place = {t, launch.threads, bid, launch.grid, b->shared};
        f.entry = launch.entry;
        f.params = launch.params;
        b->warps[(size_t)t / 32].gate.live++;
        b->groups[(size_t)t / 128].live++;
        start_fibre(&f, stacks + (size_t)t * stack_bytes);
    }
}

/** Run blocks first .. first + count - 1 of each launch, all of them at once. */
static bool run_together(const rg_emu_launch *launches, size_t launch_count, int first, int count)
{
    size_t threads = 0, block_count = 0;
    for (size_t l = 0; l < launch_count; l++) {
        const int blocks = count > 0 ? count : launches[l].grid;
        threads += (size_t)blocks * (size_t)launches[l].threads;
        block_count += (size_t)blocks;
    }
    unsigned char *stacks = stack_pool(threads);
    std::vector<fibre> fibres(threads);
    std::vector<block> blocks(block_count);
    size_t thread = 0, next = 0;
    for (size_t l = 0; l < launch_count; l++)
        for (int b = 0; b < (count > 0 ? count : launches[l].grid); b++) {
            make_block(&blocks[next++], &fibres[thread], stacks + thread * stack_bytes, launches[l],
                       first + b);
            thread += (size_t)launches[l].threads;
        }
    const bool fine = run_blocks(fibres);
    for (block &b : blocks)
        free(b.shared);
    return fine;
}

bool rg_emu_run(const rg_emu_launch *launches, size_t count, bool at_once)
{
    if (at_once)
        return run_together(launches, count, 0, 0);
    for (size_t l = 0; l < count; l++)
        for (int b = 0; b < launches[l].grid; b++)
            if (!run_together(&launches[l], 1, b, 1))
                return false;
    return true;
}

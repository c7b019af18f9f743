/* tests/gpu/empty_image.c: a counter data image of a chip in which nothing was counted, on stdout.
 *
 * Reads the toolkit's CUPTI and NVPW headers; needs the two libraries, no GPU.
 * usage: empty_image LIBCUPTI LIBNVPERF_HOST CHIP
 */
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <nvperf_cuda_host.h>
#include <nvperf_host.h>

static void *need(void *library, const char *name)
{
    void *call = library ? dlsym(library, name) : NULL;
    if (!call) {
        fprintf(stderr, "no %s: %s\n", name, dlerror());
        exit(3);
    }
    return call;
}
#define CALL(library, name, params)                      \
    do {                                                 \
        __typeof__(&name) call_;                         \
        *(void **)&call_ = need(library, #name);         \
        const int result_ = (int)call_(&(params));       \
        if (result_ != 0) {                              \
            fprintf(stderr, "%s: %d\n", #name, result_); \
            return 3;                                    \
        }                                                \
    } while (0)

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    void *nvpw = dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL);
    void *cupti = dlopen(argv[1], RTLD_NOW);
    NVPW_InitializeHost_Params start = {NVPW_InitializeHost_Params_STRUCT_SIZE, NULL};
    CALL(nvpw, NVPW_InitializeHost, start);
    NVPW_CUDA_CounterDataBuilder_Create_Params create = {
        .structSize = NVPW_CUDA_CounterDataBuilder_Create_Params_STRUCT_SIZE, .pChipName = argv[3]};
    CALL(nvpw, NVPW_CUDA_CounterDataBuilder_Create, create);
    NVPW_CounterDataBuilder_GetCounterDataPrefix_Params prefix = {
        .structSize = NVPW_CounterDataBuilder_GetCounterDataPrefix_Params_STRUCT_SIZE,
        .pCounterDataBuilder = create.pCounterDataBuilder};
    CALL(nvpw, NVPW_CounterDataBuilder_GetCounterDataPrefix, prefix);
    prefix.bytesAllocated = prefix.bytesCopied;
    prefix.pBuffer = calloc(1, prefix.bytesAllocated + 1);
    CALL(nvpw, NVPW_CounterDataBuilder_GetCounterDataPrefix, prefix);

    /* CUPTI knows no image before its host side is in use */
    CUpti_Profiler_Host_Initialize_Params host = {
        .structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE,
        .profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER,
        .pChipName = argv[3]};
    CALL(cupti, cuptiProfilerHostInitialize, host);
    CUpti_Profiler_CounterDataImageOptions options = {
        .structSize = CUpti_Profiler_CounterDataImageOptions_STRUCT_SIZE,
        .pCounterDataPrefix = prefix.pBuffer,
        .counterDataPrefixSize = prefix.bytesCopied,
        .maxNumRanges = 1,
        .maxNumRangeTreeNodes = 1,
        .maxRangeNameLength = 64};
    CUpti_Profiler_CounterDataImage_CalculateSize_Params size = {
        .structSize = CUpti_Profiler_CounterDataImage_CalculateSize_Params_STRUCT_SIZE,
        .sizeofCounterDataImageOptions = CUpti_Profiler_CounterDataImageOptions_STRUCT_SIZE,
        .pOptions = &options};
    CALL(cupti, cuptiProfilerCounterDataImageCalculateSize, size);
    CUpti_Profiler_CounterDataImage_Initialize_Params init = {
        .structSize = CUpti_Profiler_CounterDataImage_Initialize_Params_STRUCT_SIZE,
        .sizeofCounterDataImageOptions = CUpti_Profiler_CounterDataImageOptions_STRUCT_SIZE,
        .pOptions = &options,
        .counterDataImageSize = size.counterDataImageSize,
        .pCounterDataImage = calloc(1, size.counterDataImageSize)};
    CALL(cupti, cuptiProfilerCounterDataImageInitialize, init);
    return fwrite(init.pCounterDataImage, 1, init.counterDataImageSize, stdout) ==
                   init.counterDataImageSize
               ? 0
               : 3;
}

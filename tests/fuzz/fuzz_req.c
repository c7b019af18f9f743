/* Any bytes as a request trace of every format: requests in order of arrival, or an error at a
 * place; never a crash. */
// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/req.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"fuzz.csv", "fuzz.jsonl", "fuzz.json"};
    for (int i = 0; i < 3; i++) {
        rg_arena *arena = rg_arena_new(64);
        rg_requests *stream = NULL;
        rg_err err = {0};
        rg_status status =
            rg_requests_parse(arena, names[i], (const char *)data, size, NULL, &stream, &err);
        double before = 0;
        for (bool more = true; status == RG_OK && more;) {
            rg_request request;
            status = rg_requests_next(stream, &request, &more, &err);
            if (status != RG_OK || !more)
                break;
            int64_t tokens = 0;
            for (int s = 0; s < request.segment_count; s++)
                tokens += request.segments[s].tokens;
            assert(tokens <= request.prompt_tokens);
            assert(request.prompt_tokens > 0 && request.output_tokens > 0);
            assert(request.arrival_s >= before);
            before = request.arrival_s;
        }
        assert(status == RG_OK || err.text[0]);
        if (stream)
            rg_requests_close(stream);
        rg_arena_free(arena);
    }
    return 0;
}

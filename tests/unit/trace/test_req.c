/* Request traces: formats and quirks of real files; made-up requests have the moments asked for. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "core/csv.h"
#include "trace/req.h"
#include "trace/req_row.h"

static rg_arena *arena;
static rg_err err;

static int setup(void **state)
{
    (void)state;
    arena = rg_arena_new(512);
    err = (rg_err){0};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rg_arena_free(arena);
    return 0;
}

static rg_requests *parse(const char *name, const char *text)
{
    rg_requests *stream = NULL;
    assert_ok(rg_requests_parse(arena, name, text, strlen(text), NULL, &stream, &err));
    return stream;
}

static rg_request next(rg_requests *stream)
{
    rg_request request;
    bool more;
    assert_ok(rg_requests_next(stream, &request, &more, &err));
    assert_true(more);
    return request;
}

static void ends(rg_requests *stream)
{
    rg_request request;
    bool more;
    double at;
    assert_ok(rg_requests_peek(stream, &at, &err));
    assert_true(isinf(at));
    assert_ok(rg_requests_next(stream, &request, &more, &err));
    assert_false(more);
}

static void refused(const char *name, const char *text, const char *wanted, int line)
{
    rg_requests *stream = NULL;
    rg_err own = {0};
    rg_status status = rg_requests_parse(arena, name, text, strlen(text), NULL, &stream, &own);
    for (bool more = true; status == RG_OK && more;) {
        rg_request request;
        status = rg_requests_next(stream, &request, &more, &own);
    }
    assert_int_equal(status, RG_ERR_INPUT);
    if (!strstr(own.text, wanted))
        print_error("message '%s' lacks '%s'\n", own.text, wanted);
    assert_non_null(strstr(own.text, wanted));
    assert_int_equal(own.pos.line, line);
}

/* Seven fractional digits, CRLF, no end of the last line: as Azure's files are. 18:17:03.9799600 to
 * 18:17:04.0319600 is 52 ms. */
static void azure_times_keep_seven_digits(void **state)
{
    (void)state;
    rg_requests *s = parse("a.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
                                    "2023-11-16 18:17:03.9799600,4808,10\r\n"
                                    "2023-11-16 18:17:04.0319600,3180,8\r\n"
                                    "2023-11-17 00:00:00.0000001,1,1");
    rg_request r = next(s);
    assert_true(r.arrival_s == 0);
    assert_int_equal(r.prompt_tokens, 4808);
    r = next(s);
    assert_close(r.arrival_s, 0.052, 1e-9);
    assert_int_equal(r.output_tokens, 8);
    /* Midnight is 5 h 42 min 56.0200401 s after the first. */
    r = next(s);
    assert_close(r.arrival_s, 20576.0200401, 1e-12);
    ends(s);
    assert_string_equal(rg_requests_facts(s)->format, "azure");
}

static void azure_2024_times_carry_a_zone(void **state)
{
    (void)state;
    int64_t a, b;
    assert_true(rg_row_parse_time("2024-05-10 00:00:00.009930+00:00", &a));
    assert_true(rg_row_parse_time("2024-05-10T02:00:00.00993+02:00", &b));
    assert_int_equal(a, b);
    /* 2024-05-10 is day 19853 since 1970 (54 years of which 13 leap, 130 days into a leap year). */
    assert_int_equal(a, INT64_C(19853) * 86400 * 1000000000 + 9930000);
    assert_false(rg_row_parse_time("2024-13-10 00:00:00", &a));
    assert_false(rg_row_parse_time("10.05.2024 00:00", &a));
}

static void burstgpt_failures_are_left_out_and_counted(void **state)
{
    (void)state;
    rg_requests *s =
        parse("b.csv", "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
                       "5,ChatGPT,472,18,490,Conversation log\n"
                       "45,ChatGPT,1087,0,1087,Conversation log\n"
                       "118,GPT-4,417,276,693,API log\n");
    assert_int_equal(next(s).prompt_tokens, 472);
    assert_close(next(s).arrival_s, 113, 1e-12);
    ends(s);
    assert_int_equal(rg_requests_facts(s)->empty_output, 1);
    assert_int_equal(rg_requests_facts(s)->rows, 3);
}

static void vidur_lengths_need_arrivals(void **state)
{
    (void)state;
    rg_requests *s =
        parse("v.csv", "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n"
                       "3772,54,3826,69.85\n2015,156,2171,12.9\n");
    assert_true(rg_requests_facts(s)->no_arrivals);
    rg_arrival_spec spec;
    assert_ok(rg_arrival_parse("uniform:4/s", &spec, &err));
    assert_ok(rg_requests_with_arrivals(arena, s, &spec, 1, &s, &err));
    assert_close(next(s).arrival_s, 0.25, 1e-12);
    rg_request r = next(s);
    assert_close(r.arrival_s, 0.5, 1e-12);
    assert_int_equal(r.prompt_tokens, 2015);
    ends(s);
}

/* Under a name of its own, as seconds or as a date; what is neither is named. */
static void arrivals_are_found_under_other_names(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "timestamp,num_prefill_tokens,num_decode_tokens\n5.5,100,20\n7.25,200,40\n",
        "num_prefill_tokens,num_decode_tokens,arrival_time\n100,20,2024-05-10 00:00:00.5\n"
        "200,40,2024-05-10 00:00:02.25\n"};
    for (int i = 0; i < 2; i++) {
        rg_requests *s = parse("v.csv", texts[i]);
        assert_false(rg_requests_facts(s)->no_arrivals);
        assert_close(next(s).arrival_s + 1, 1, 1e-12);
        assert_close(next(s).arrival_s, 1.75, 1e-12);
        ends(s);
    }
    refused("v.csv", "timestamp,num_prefill_tokens,num_decode_tokens\nnoon,100,20\n", "'noon'", 2);
}

static void mooncake_ids_are_blocks_of_512_and_the_last_is_partial(void **state)
{
    (void)state;
    rg_requests *s = parse("m.jsonl", "{\"timestamp\": 0, \"input_length\": 1030, "
                                      "\"output_length\": 5, \"hash_ids\": [0, 1, 2]}\n"
                                      "\n"
                                      "{\"timestamp\": 27000, \"input_length\": 600, "
                                      "\"output_length\": 9, \"hash_ids\": [0, 7]}");
    rg_request r = next(s);
    assert_int_equal(r.segment_count, 3);
    assert_int_equal(r.segments[2].tokens, 1030 - 1024);
    const uint64_t first = r.segments[0].id, second = r.segments[1].id;
    r = next(s);
    assert_close(r.arrival_s, 27, 1e-12);
    assert_true(r.segments[0].id == first && r.segments[1].id != second);
    assert_int_equal(r.trace_block_tokens, 512);
    ends(s);
}

static void vllm_and_sharegpt_give_lengths(void **state)
{
    (void)state;
    rg_requests *s = parse("r.json", "{\"input_lens\":[5,600],\"output_lens\":[2,3],\"x\":1}");
    assert_int_equal(next(s).prompt_tokens, 5);
    assert_int_equal(next(s).output_tokens, 3);
    s = parse("l.json", "[[100, 20], {\"prompt_len\": 7, \"output_len\": 8}]");
    assert_int_equal(next(s).output_tokens, 20);
    assert_int_equal(next(s).prompt_tokens, 7);
    /* 9 characters (one of two bytes) are 3 tokens at 4 characters each, rounded up. */
    s = parse("t.json",
              "[{\"conversations\":[{\"value\":\"gr\\u00fcezi!!!\"},{\"value\":\"hi\"}]}]");
    assert_int_equal(next(s).prompt_tokens, 3);
    assert_true(rg_requests_facts(s)->estimated_lengths);
}

static void rows_out_of_order_are_put_in_order_and_counted(void **state)
{
    (void)state;
    rg_requests *s = parse("o.csv", "arrival_s,input_tokens,output_tokens\n"
                                    "1,10,1\n3,30,1\n2,20,1\n3,31,1\n4,40,1\n");
    for (int64_t want = 10; want <= 31; want += want < 30 ? 10 : 1)
        assert_int_equal(next(s).prompt_tokens, want);
    assert_int_equal(next(s).prompt_tokens, 40);
    assert_int_equal(rg_requests_facts(s)->out_of_order, 1);
    assert_int_equal(rg_requests_facts(s)->equal_stamps, 0); /* 3 and 3 are not neighbours */
}

static void sessions_of_a_file_share_their_growing_text(void **state)
{
    (void)state;
    rg_requests *s = parse("s.csv", "arrival_s,input_tokens,output_tokens,session,turn,prefix,"
                                    "prefix_tokens\n0,10,5,3,0,7,4\n1,30,5,3,1,7,4\n2,9,1,,,7,4\n");
    rg_request r = next(s);
    assert_int_equal(r.segment_count, 2);
    const uint64_t prefix = r.segments[0].id, text = r.segments[1].id;
    assert_int_equal(r.segments[0].tokens, 4);
    assert_int_equal(r.segments[1].tokens, 6);
    assert_true(r.output_id == text);
    r = next(s);
    assert_true(r.segments[0].id == prefix && r.segments[1].id == text);
    r = next(s);
    assert_int_equal(r.segment_count, 1);
    assert_true(r.segments[0].id == prefix && r.output_id == 0);
}

static void mistakes_are_named_with_their_place(void **state)
{
    (void)state;
    refused("a.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n16.11.2023,1,1\n", "'16.11.2023'",
            2);
    refused("a.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,-4,1\n", "'-4'",
            2);
    refused("a.csv", "time,in,out\n1,2,3\n", "no known trace", 1);
    refused("a.csv", "arrival_s,input_tokens,output_tokens\n", "no request", 1);
    refused("m.jsonl", "{\"timestamp\": 0, \"input_length\": 10}\n", "no output length", 1);
    refused("m.jsonl", "{\"timestamp\": 0,\n", "not JSON", 1);
    refused("m.jsonl",
            "{\"timestamp\":0,\"input_length\":10,\"output_length\":1,\"hash_ids\":[1,2]}\n",
            "hash_ids", 1);
    refused("r.json", "{\"input_lens\":[1,2],\"output_lens\":[1]}", "equal length", 1);
}

static void overlong_requests_are_rejected_cut_or_fail(void **state)
{
    (void)state;
    const char *text = "arrival_s,input_tokens,output_tokens\n0,100,50\n1,90,10\n2,200,50\n";
    rg_requests *s = parse("o.csv", text);
    assert_ok(rg_requests_limit(arena, s, 120, RG_OVERLONG_REJECT, &s, &err));
    rg_request r = next(s);
    assert_int_equal(r.prompt_tokens, 90);
    assert_int_equal(r.index, 0);
    ends(s);
    assert_int_equal(rg_requests_facts(s)->overlong, 2);
    s = parse("o.csv", text);
    assert_ok(rg_requests_limit(arena, s, 120, RG_OVERLONG_CUT, &s, &err));
    r = next(s); /* 150 - 120 = 30 off the output */
    assert_int_equal(r.prompt_tokens, 100);
    assert_int_equal(r.output_tokens, 20);
    assert_int_equal(next(s).prompt_tokens, 90);
    r = next(s); /* 130 over: 49 off the output, 81 off the prompt */
    assert_int_equal(r.output_tokens, 1);
    assert_int_equal(r.prompt_tokens, 119);
    assert_int_equal(rg_requests_facts(s)->cut_tokens, 30 + 130);
    s = parse("o.csv", text);
    assert_ok(rg_requests_limit(arena, s, 120, RG_OVERLONG_FAIL, &s, &err));
    bool more;
    assert_int_equal(rg_requests_next(s, &r, &more, &err), RG_ERR_INPUT);
    assert_non_null(strstr(err.text, "'100' prompt"));
}

/* ---- made up */

typedef struct moments {
    double mean, cv, last;
    int64_t count;
} moments;

static moments gaps_of(const char *arrivals, int64_t count)
{
    rg_synth_spec spec = {.requests = count,
                          .prompt = {.kind = RG_LENGTH_FIXED, .mean = 10},
                          .output = {.kind = RG_LENGTH_FIXED, .mean = 10},
                          .seed = 5};
    assert_ok(rg_arrival_parse(arrivals, &spec.arrivals, &err));
    rg_requests *s;
    assert_ok(rg_requests_synth(arena, &spec, &s, &err));
    double sum = 0, squares = 0, before = 0;
    for (int64_t i = 0; i < count; i++) {
        const double at = next(s).arrival_s;
        sum += at - before;
        squares += (at - before) * (at - before);
        before = at;
    }
    ends(s);
    const double n = (double)count, mean = sum / n;
    return (moments){mean, sqrt(squares / n - mean * mean) / mean, before, count};
}

/* Standard error of a mean of n gaps is cv / sqrt(n): 0.3 % for n = 100000 and cv 1. */
static void arrival_processes_have_their_moments(void **state)
{
    (void)state;
    moments m = gaps_of("poisson:10/s", 100000);
    assert_close(m.mean, 0.1, 0.01);
    assert_close(m.cv, 1, 0.02);
    m = gaps_of("gamma:10/s,cv=2", 200000);
    assert_close(m.mean, 0.1, 0.02);
    assert_close(m.cv, 2, 0.05);
    m = gaps_of("uniform:10/s", 1000);
    assert_close(m.mean, 0.1, 1e-9);
    /* Two states with equal mean stays: mean rate (2 + 18) / 2 = 10; more varied than Poisson. */
    m = gaps_of("mmpp:2/s,18/s,5s,5s", 200000);
    assert_close(m.mean, 0.1, 0.05);
    assert_true(m.cv > 1.3);
    m = gaps_of("at-once", 10);
    assert_true(m.last == 0);
}

static void lengths_have_their_moments(void **state)
{
    (void)state;
    rg_synth_spec spec = {.requests = 100000, .seed = 3, .arrivals = {.kind = RG_ARRIVE_AT_ONCE}};
    assert_ok(rg_length_parse("lognormal:500,cv=1.2", &spec.prompt, &err));
    assert_ok(rg_length_parse("zipf:1-1000,1.0", &spec.output, &err));
    rg_requests *s;
    assert_ok(rg_requests_synth(arena, &spec, &s, &err));
    double sum = 0, ones = 0;
    for (int64_t i = 0; i < spec.requests; i++) {
        const rg_request r = next(s);
        sum += (double)r.prompt_tokens;
        ones += r.output_tokens == 1;
    }
    assert_close(sum / 1e5, 500, 0.02); /* 5 standard errors of 1.2 / sqrt(1e5) */
    /* P(1) = 1 / H(1000) = 1 / 7.485471. */
    assert_close(ones / 1e5, 1 / 7.485471, 0.05);
    rg_length_spec bad;
    assert_int_equal(rg_length_parse("zipf:5", &bad, &err), RG_ERR_USAGE);
}

static void closed_loops_wait_for_answers(void **state)
{
    (void)state;
    rg_synth_spec spec = {.requests = 5,
                          .arrivals = {.kind = RG_ARRIVE_CLOSED, .users = 2},
                          .prompt = {.kind = RG_LENGTH_FIXED, .mean = 10},
                          .output = {.kind = RG_LENGTH_FIXED, .mean = 10},
                          .seed = 1};
    rg_requests *s;
    assert_ok(rg_requests_synth(arena, &spec, &s, &err));
    rg_request first = next(s);
    next(s);
    double at;
    assert_ok(rg_requests_peek(s, &at, &err));
    assert_true(isinf(at));
    rg_requests_finished(s, &first, 7);
    assert_ok(rg_requests_peek(s, &at, &err));
    assert_true(at == 7);
}

static void turns_carry_the_talk_so_far(void **state)
{
    (void)state;
    rg_synth_spec spec = {.requests = 2,
                          .arrivals = {.kind = RG_ARRIVE_AT_ONCE},
                          .prompt = {.kind = RG_LENGTH_FIXED, .mean = 10},
                          .output = {.kind = RG_LENGTH_FIXED, .mean = 20},
                          .sessions = {.turns = 2, .system_tokens = 100},
                          .seed = 1};
    rg_requests *s;
    assert_ok(rg_requests_synth(arena, &spec, &s, &err));
    rg_request first = next(s);
    assert_int_equal(first.prompt_tokens, 110);
    rg_requests_finished(s, &first, 3);
    rg_request second = next(s);
    assert_int_equal(second.prompt_tokens, 110 + 20 + 10);
    assert_int_equal(second.turn, 1);
    assert_int_equal(second.segments[0].tokens, 100);
    ends(s);
}

/* Heads of the public traces, with the quirks they have. Counts by wc and awk. */
static void public_traces_are_read_whole(void **state)
{
    (void)state;
    const struct {
        const char *path;
        int64_t rows;
    } files[] = {{SHARED("serving/traces/azure2023_conv_first6000.csv"), 6000},
                 {SHARED("serving/traces/azure2023_code_first3000.csv"), 3000},
                 {SHARED("serving/traces/mooncake_conversation_first1500.jsonl"), 1500},
                 {SHARED("serving/traces/mooncake_synthetic_first600.jsonl"), 600},
                 {SHARED("serving/traces/vidur_arxiv_lengths_first2000.csv"), 2000}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        skip_without(files[i].path);
        rg_requests *s = NULL;
        assert_ok(rg_requests_open(arena, files[i].path, NULL, &s, &err));
        for (int64_t row = 0; row < files[i].rows; row++)
            next(s);
        ends(s);
        rg_requests_close(s);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(azure_times_keep_seven_digits),
        TEST(azure_2024_times_carry_a_zone),
        TEST(burstgpt_failures_are_left_out_and_counted),
        TEST(vidur_lengths_need_arrivals),
        TEST(arrivals_are_found_under_other_names),
        TEST(mooncake_ids_are_blocks_of_512_and_the_last_is_partial),
        TEST(vllm_and_sharegpt_give_lengths),
        TEST(rows_out_of_order_are_put_in_order_and_counted),
        TEST(sessions_of_a_file_share_their_growing_text),
        TEST(mistakes_are_named_with_their_place),
        TEST(overlong_requests_are_rejected_cut_or_fail),
        TEST(arrival_processes_have_their_moments),
        TEST(lengths_have_their_moments),
        TEST(closed_loops_wait_for_answers),
        TEST(turns_carry_the_talk_so_far),
        TEST(public_traces_are_read_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

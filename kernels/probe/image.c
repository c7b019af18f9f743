/* kernels/probe/image.c: counter data images in files.
 *
 * Reads image.h, core/file.h, jansson, libmd.
 */
// SPDX-License-Identifier: Apache-2.0
#include <sys/types.h>

#include <sha2.h>

#include "image.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "core/file.h"

static void digest(const uint8_t *data, size_t bytes, char out[65])
{
    SHA2_CTX context;
    uint8_t sum[SHA256_DIGEST_LENGTH];
    SHA256Init(&context);
    SHA256Update(&context, data, bytes);
    SHA256Final(sum, &context);
    for (int i = 0; i < SHA256_DIGEST_LENGTH; i++)
        snprintf(out + 2 * i, 3, "%02x", sum[i]);
}

rg_status rg_image_write(const char *path, const rg_image *image, rg_err *err)
{
    char sum[65];
    digest(image->data, image->bytes, sum);
    json_t *metrics = json_array(), *values = json_array();
    for (int i = 0; i < image->metric_count; i++) {
        json_array_append_new(metrics, json_string(image->metrics[i]));
        json_array_append_new(values, json_real(image->values[i]));
    }
    json_t *head = json_pack("{s:s, s:s, s:s, s:o, s:o, s:I, s:s}", "schema", "ridge.counterdata/1",
                             "chip", image->chip, "device", image->device, "metrics", metrics,
                             "values", values, "bytes", (json_int_t)image->bytes, "sha256", sum);
    rg_out_file file;
    const rg_status opened = rg_out_open(&file, path, err);
    if (opened != RG_OK) {
        json_decref(head);
        return opened;
    }
    const bool fine = head && json_dumpf(head, file.stream, JSON_COMPACT) == 0 &&
                      fputc('\n', file.stream) != EOF &&
                      fwrite(image->data, 1, image->bytes, file.stream) == image->bytes;
    json_decref(head);
    if (!fine) {
        rg_out_abandon(&file);
        return rg_fail(err, RG_ERR_IO, RG_NOWHERE, "cannot write '%s'", path);
    }
    return rg_out_commit(&file, err);
}

static rg_status wrong(const char *path, const char *what, rg_err *err)
{
    const rg_pos pos = {path, 1, 1};
    return rg_fail(err, RG_ERR_INPUT, pos,
                   "%s; want a counter data image that 'ridge-probe run --images' wrote", what);
}

static rg_status read_head(rg_arena *arena, const char *path, const json_t *head, rg_image *image,
                           const char **sum, rg_err *err)
{
    const char *schema = json_string_value(json_object_get(head, "schema"));
    const char *chip = json_string_value(json_object_get(head, "chip"));
    const char *device = json_string_value(json_object_get(head, "device"));
    const json_t *metrics = json_object_get(head, "metrics");
    const json_t *values = json_object_get(head, "values");
    *sum = json_string_value(json_object_get(head, "sha256"));
    if (!schema || strcmp(schema, "ridge.counterdata/1") != 0 || !chip || !*sum)
        return wrong(path, "no schema 'ridge.counterdata/1', chip and sha256 in the first line",
                     err);
    if (json_array_size(metrics) < 1 || json_array_size(metrics) > RG_IMAGE_METRICS)
        return wrong(path, "the list of metrics is empty or too long", err);
    image->metric_count = (int)json_array_size(metrics);
    for (int i = 0; i < image->metric_count; i++) {
        const char *name = json_string_value(json_array_get(metrics, (size_t)i));
        const json_t *value = json_array_get(values, (size_t)i);
        if (!name)
            return wrong(path, "a metric is no text", err);
        image->metrics[i] = rg_arena_strdup(arena, name, err);
        image->values[i] = json_is_number(value) ? json_number_value(value) : NAN;
        if (!image->metrics[i])
            return RG_ERR_LIMIT;
    }
    image->metrics[image->metric_count] = NULL;
    image->chip = rg_arena_strdup(arena, chip, err);
    image->device = rg_arena_strdup(arena, device ? device : "", err);
    *sum = rg_arena_strdup(arena, *sum, err);
    return image->chip && image->device && *sum ? RG_OK : RG_ERR_LIMIT;
}

rg_status rg_image_read(rg_arena *arena, const char *path, rg_image *image, rg_err *err)
{
    char *text = NULL, got[65];
    size_t length = 0;
    memset(image, 0, sizeof *image);
    RG_TRY(rg_file_read(arena, path, (size_t)64 << 20, &text, &length, err));
    const char *end = memchr(text, '\n', length);
    json_t *head = end ? json_loadb(text, (size_t)(end - text), 0, NULL) : NULL;
    if (!head)
        return wrong(path, "the first line is no JSON", err);
    const char *sum = NULL;
    const rg_status status = read_head(arena, path, head, image, &sum, err);
    json_decref(head);
    RG_TRY(status);
    image->data = (const uint8_t *)end + 1;
    image->bytes = length - (size_t)(end + 1 - text);
    digest(image->data, image->bytes, got);
    if (strcmp(got, sum) != 0)
        return wrong(path, "the image is cut or changed: its SHA-256 is not that of the first line",
                     err);
    return RG_OK;
}

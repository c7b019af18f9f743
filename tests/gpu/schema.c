/* tests/gpu/schema.c: a JSON file against a JSON Schema.
 *
 * Reads jansson. Knows what kernels/run-record.schema.json uses (type, const, enum, required,
 * properties, additionalProperties, items, minItems, minimum, exclusiveMinimum, $ref into $defs)
 * and refuses a schema that uses more. usage: schema SCHEMA FILE
 */
// SPDX-License-Identifier: Apache-2.0
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const json_t *root;
static int wrong;

static void complain(const char *path, const char *what)
{
    if (wrong++ < 20)
        fprintf(stderr, "%s: %s\n", path, what);
}

static int is_type(const json_t *value, const char *type)
{
    return (!strcmp(type, "object") && json_is_object(value)) ||
           (!strcmp(type, "array") && json_is_array(value)) ||
           (!strcmp(type, "string") && json_is_string(value)) ||
           (!strcmp(type, "integer") && json_is_integer(value)) ||
           (!strcmp(type, "number") && json_is_number(value)) ||
           (!strcmp(type, "boolean") && json_is_boolean(value)) ||
           (!strcmp(type, "null") && json_is_null(value));
}

static int any_type(const json_t *value, const json_t *types)
{
    size_t i;
    json_t *type;
    if (json_is_string(types))
        return is_type(value, json_string_value(types));
    json_array_foreach((json_t *)types, i, type)
    {
        if (is_type(value, json_string_value(type)))
            return 1;
    }
    return 0;
}

static void check(const json_t *value, const json_t *schema, const char *path);

static void check_object(const json_t *value, const json_t *schema, const char *path)
{
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *others = json_object_get(schema, "additionalProperties");
    size_t i;
    json_t *name, *child;
    const char *key;
    char below[1024];
    json_array_foreach(json_object_get(schema, "required"), i, name)
    {
        if (!json_object_get(value, json_string_value(name))) {
            snprintf(below, sizeof below, "%s/%s", path, json_string_value(name));
            complain(below, "missing");
        }
    }
    json_object_foreach((json_t *)value, key, child)
    {
        const json_t *of = json_object_get(properties, key);
        snprintf(below, sizeof below, "%s/%s", path, key);
        if (of)
            check(child, of, below);
        else if (json_is_false(others))
            complain(below, "not in the schema");
        else if (json_is_object(others))
            check(child, others, below);
    }
}

static void check_number(const json_t *value, const json_t *schema, const char *path)
{
    const json_t *least = json_object_get(schema, "minimum");
    const json_t *above = json_object_get(schema, "exclusiveMinimum");
    if (least && json_number_value(value) < json_number_value(least))
        complain(path, "below its minimum");
    if (above && json_number_value(value) <= json_number_value(above))
        complain(path, "not above its minimum");
}

static void check(const json_t *value, const json_t *schema, const char *path)
{
    const char *reference = json_string_value(json_object_get(schema, "$ref"));
    if (reference) {
        const json_t *of = json_object_get(json_object_get(root, "$defs"), reference + 8);
        if (strncmp(reference, "#/$defs/", 8) != 0 || !of)
            complain(path, "the schema refers to nothing");
        else
            check(value, of, path);
        return;
    }
    size_t i;
    json_t *item;
    const json_t *types = json_object_get(schema, "type"), *same = json_object_get(schema, "const");
    const json_t *choices = json_object_get(schema, "enum");
    if (types && !any_type(value, types))
        complain(path, "of another type");
    if (same && !json_equal(value, same))
        complain(path, "not the constant");
    int found = !choices;
    json_array_foreach((json_t *)choices, i, item)
    {
        found = found || json_equal(value, item);
    }
    if (!found)
        complain(path, "none of the choices");
    if (json_is_object(value))
        check_object(value, schema, path);
    if (json_is_number(value))
        check_number(value, schema, path);
    if (!json_is_array(value))
        return;
    if (json_array_size(value) < (size_t)json_integer_value(json_object_get(schema, "minItems")))
        complain(path, "too few items");
    json_array_foreach((json_t *)value, i, item)
    {
        char below[1024];
        snprintf(below, sizeof below, "%s/%zu", path, i);
        if (json_object_get(schema, "items"))
            check(item, json_object_get(schema, "items"), below);
    }
}

/* Words that this program does not know would be left unchecked in silence. */
static void know(const json_t *schema, const char *path, int is_map)
{
    static const char *const words[] = {"$schema",    "$defs",       "$ref",
                                        "title",      "description", "type",
                                        "const",      "enum",        "required",
                                        "properties", "items",       "additionalProperties",
                                        "minItems",   "minimum",     "exclusiveMinimum",
                                        NULL};
    const char *key;
    json_t *child;
    json_object_foreach((json_t *)schema, key, child)
    {
        int known = is_map;
        for (const char *const *word = words; *word; word++)
            known = known || !strcmp(key, *word);
        if (!known)
            complain(key, "the schema uses a word that is not known here");
        const int below_map = !is_map && (!strcmp(key, "properties") || !strcmp(key, "$defs"));
        if (json_is_object(child))
            know(child, path, below_map);
    }
}

int main(int argc, char **argv)
{
    json_error_t error;
    if (argc != 3)
        return 2;
    root = json_load_file(argv[1], JSON_REJECT_DUPLICATES, &error);
    json_t *value = root ? json_load_file(argv[2], JSON_REJECT_DUPLICATES, &error) : NULL;
    if (!value) {
        fprintf(stderr, "%s:%d: %s\n", error.source, error.line, error.text);
        return 2;
    }
    know(root, "", 0);
    check(value, root, "");
    return wrong > 0;
}

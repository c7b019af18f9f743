// SPDX-License-Identifier: Apache-2.0
#include "core/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Syntax of a decimal number; strtod alone would accept hexadecimal, "nan" and blanks. */
static bool looks_decimal(const char *s)
{
    if (*s == '+' || *s == '-')
        s++;
    int digits = 0;
    for (; *s >= '0' && *s <= '9'; s++)
        digits++;
    if (*s == '.')
        for (s++; *s >= '0' && *s <= '9'; s++)
            digits++;
    if (digits == 0)
        return false;
    if (*s == 'e' || *s == 'E') {
        s++;
        if (*s == '+' || *s == '-')
            s++;
        if (*s < '0' || *s > '9')
            return false;
        while (*s >= '0' && *s <= '9')
            s++;
    }
    return *s == 0;
}

bool rg_text_to_real(const char *text, double *out)
{
    if (!looks_decimal(text))
        return false;
    /* The program never calls setlocale, so strtod reads the C locale's point. */
    const double value = strtod(text, NULL);
    if (!isfinite(value))
        return false;
    *out = value;
    return true;
}

bool rg_text_to_int(const char *text, int64_t *out)
{
    const char *s = text + (*text == '+' || *text == '-');
    if (*s == 0)
        return false;
    if (strspn(s, "0123456789") == strlen(s)) {
        errno = 0;
        const long long value = strtoll(text, NULL, 10);
        if (errno)
            return false;
        *out = value;
        return true;
    }
    double real;
    if (!rg_text_to_real(text, &real) || real != floor(real) || fabs(real) > 0x1p53)
        return false;
    *out = (int64_t)real;
    return true;
}

int rg_text_distance(const char *a, const char *b)
{
    enum { CAP = 64 };
    const int n = (int)strnlen(a, CAP), m = (int)strnlen(b, CAP);
    int rows[3][CAP + 1];
    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (int j = 0; j <= m; j++) {
        last[j] = j;
        before[j] = 0;
    }
    for (int i = 1; i <= n; i++) {
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            const int change = last[j - 1] + (a[i - 1] != b[j - 1]);
            int best = last[j] + 1 < now[j - 1] + 1 ? last[j] + 1 : now[j - 1] + 1;
            if (change < best)
                best = change;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
        int *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[m];
}

const char *rg_text_nearest(const char *text, const char *const *names)
{
    const char *nearest = NULL;
    const int length = (int)strlen(text);
    int least = length / 3 > 2 ? length / 3 : 2;
    for (; *names; names++) {
        const int distance = rg_text_distance(text, *names);
        if (distance > 1 && length < 4 && strstr(*names, text) == NULL)
            continue; /* two letters of three are another word */
        if (distance < least || (distance == least && !nearest)) {
            least = distance;
            nearest = *names;
        }
    }
    return nearest;
}

size_t rg_text_utf8_valid(const char *text, size_t length)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t i = 0;
    while (i < length) {
        const unsigned char c = s[i];
        const int extra = c < 0x80                ? 0
                          : c >= 0xc2 && c < 0xe0 ? 1
                          : c >= 0xe0 && c < 0xf0 ? 2
                          : c >= 0xf0 && c < 0xf5 ? 3
                                                  : -1;
        if (extra < 0 || i + (size_t)extra >= length)
            return i;
        for (int j = 1; j <= extra; j++)
            if ((s[i + (size_t)j] & 0xc0) != 0x80)
                return i;
        const unsigned char second = extra ? s[i + 1] : 0;
        const bool overlong_or_surrogate =
            (c == 0xe0 && second < 0xa0) || (c == 0xed && second >= 0xa0) ||
            (c == 0xf0 && second < 0x90) || (c == 0xf4 && second >= 0x90);
        if (overlong_or_surrogate)
            return i;
        i += (size_t)extra + 1;
    }
    return i;
}

bool rg_text_ends_with(const char *text, const char *ending)
{
    const size_t n = strlen(text), m = strlen(ending);
    return n >= m && memcmp(text + n - m, ending, m) == 0;
}

/* isl and osl are what benchmarks of inference call input and output sequence length. */
static const char *const synonyms[][4] = {{"isl", "prompt", "context", NULL},
                                          {"osl", "answer", "output-tokens", NULL}};

const char *const *rg_text_synonyms(const char *name)
{
    for (size_t g = 0; g < sizeof synonyms / sizeof synonyms[0]; g++)
        for (int i = 0; synonyms[g][i]; i++)
            if (strcmp(synonyms[g][i], name) == 0)
                return synonyms[g];
    return NULL;
}

const char *rg_text_synonym(const char *name, const char *const *known)
{
    const char *const *same = rg_text_synonyms(name);
    const char *found = NULL;
    for (; same && *known; known++) {
        if (rg_text_synonyms(*known) != same)
            continue;
        if (found)
            return NULL;
        found = *known;
    }
    return found;
}

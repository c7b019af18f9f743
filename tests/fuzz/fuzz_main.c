/* tests/fuzz/fuzz_main.c: replay a corpus through a fuzz target in a plain build.
 *
 * Every file of the folder named like the target runs once; a crash or a sanitizer report is the
 * failure. TAP on stdout.
 */
// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
        return 2;
    }
    struct dirent **names;
    const int count = scandir(argv[1], &names, NULL, alphasort);
    if (count < 0) {
        fprintf(stderr, "%s: not a folder\n", argv[1]);
        return 2;
    }
    int done = 0;
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", argv[1], names[i]->d_name);
        const int hidden = names[i]->d_name[0] == '.';
        free(names[i]);
        FILE *file = hidden ? NULL : fopen(path, "rb");
        if (!file)
            continue;
        static uint8_t bytes[1 << 20];
        const size_t size = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        uint8_t *exact = malloc(size ? size : 1); /* so that a sanitizer sees the true end */
        if (!exact)
            return 2;
        for (size_t j = 0; j < size; j++)
            exact[j] = bytes[j];
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
        printf("ok %d - %s\n", ++done, path);
    }
    free(names);
    printf("1..%d\n", done);
    return done ? 0 : 1;
}

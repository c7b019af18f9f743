/* cli/main.c: find the command, run it, turn its status into a message and an exit code. */
// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <gsl/gsl_errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/args.h"
#include "cli/commands.h"
#include "core/file.h"

static int complain(const rg_err *err)
{
    char text[RG_ERR_TEXT_SIZE + sizeof err->file + 32];
    rg_err_format(err, text, sizeof text);
    fprintf(stderr, "ridge: %s\n", text);
    return rg_status_exit_code(err->status);
}

/* "ridge probe ..." runs ridge-probe: beside this program, else on the path. */
static int run_probe(char **argv)
{
    char self[4096], path[4200];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length > 0) {
        self[length] = 0;
        char *slash = strrchr(self, '/');
        if (slash) {
            *slash = 0;
            snprintf(path, sizeof path, "%s/ridge-probe", self);
            argv[0] = path;
            execv(path, argv);
        }
    }
    static char name[] = "ridge-probe";
    argv[0] = name;
    execvp(argv[0], argv);
    fprintf(stderr, "ridge: ridge-probe cannot be run: %s; build it with 'make'\n",
            strerror(errno));
    return 3;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Who is stopped leaves no half-written file behind. */
static void leave(int number)
{
    rg_out_remove_open(); // NOLINT(bugprone-signal-handler,cert-sig30-c): it only calls unlink
    signal(number, SIG_DFL);
    raise(number);
}

static void leave_tidy(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (signal(numbers[i], leave) == SIG_IGN)
            signal(numbers[i], SIG_IGN); /* nohup */
}

static int run_command(const rg_command *command, int argc, char **argv)
{
    rg_err err = {0};
    const double start = seconds_now();
    rg_arena *arena = rg_arena_new(RG_ARENA_DEFAULT_CAP_MIB);
    if (!arena) {
        fprintf(stderr, "ridge: the system has no memory left\n");
        return 2;
    }
    rg_args *args = NULL;
    rg_status status = rg_args_parse(arena, command, argc, argv, &args, &err);
    if (status == RG_OK && rg_arg_flag(args, "help"))
        rg_help_command(stdout, command);
    else if (status == RG_OK)
        status = command->run(arena, args, &err);
    int code = rg_status_exit_code(status);
    if (status != RG_OK && err.text[0])
        code = complain(&err);
    if (fflush(stdout) != 0 && code == 0) {
        fprintf(stderr, "ridge: the output cannot be written: %s\n", strerror(errno));
        code = 2;
    }
    /* Never part of a result: the same question gives the same bytes. */
    if (args && rg_arg_flag(args, "own-time"))
        fprintf(stderr, "ridge: took %.3f s\n", seconds_now() - start);
    rg_arena_free(arena);
    return code;
}

int main(int argc, char **argv)
{
    gsl_set_error_handler_off();
    leave_tidy();
    if (argc < 2) {
        rg_help_all(stderr);
        return 2;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("ridge %s\n", RG_VERSION);
        return 0;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        rg_help_all(stdout);
        return 0;
    }
    if (strcmp(name, "probe") == 0)
        return run_probe(argv + 1);
    const rg_command *command = rg_command_find(name);
    if (!command) {
        const char *nearest = rg_command_nearest(name);
        fprintf(stderr, "ridge: no command '%s'%s%s%s\n", name,
                nearest ? "; did you mean '" : "; 'ridge help' lists them", nearest ? nearest : "",
                nearest ? "'?" : "");
        return 2;
    }
    return run_command(command, argc - 1, argv + 1);
}

// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "cli/commands.h"
#include "core/text.h"

static const char exit_codes[] = "0 fine; 1 the answer is no (limits not met, verdict failed); "
                                 "2 mistake in the command line or a file; 3 device or environment "
                                 "(guard: inconclusive under --strict); 4 guard: incomparable or "
                                 "missing entries; 77 skipped, no device";

static const char *const groups[] = {"answer", "measure", "data", "about ridge", NULL};

void rg_help_all(FILE *out)
{
    fprintf(out, "ridge %s: how fast an AI accelerator runs an LLM, why, and what to buy\n\n",
            RG_VERSION);
    fprintf(out, "usage: ridge COMMAND [OPTION...] [FILE...]\n");
    int shown = 0, count = 0;
    while (rg_commands[count])
        count++;
    for (int g = 0; groups[g]; g++) {
        fprintf(out, "\n%s:\n", groups[g]);
        for (int i = 0; rg_commands[i]; i++)
            if (strcmp(rg_commands[i]->group, groups[g]) == 0)
                shown +=
                    fprintf(out, "  %-10s %s\n", rg_commands[i]->name, rg_commands[i]->summary) > 0;
        if (strcmp(groups[g], "measure") == 0)
            fprintf(out, "  %-10s %s\n", "probe",
                    "run CUDA kernels on this machine's GPU under CUPTI (ridge-probe)");
    }
    assert(shown == count && "every command's group is one of groups");
    (void)shown;
    fprintf(out, "\nfirst steps:\n"
                 "  ridge estimate --hw h200-sxm --model llama-3.1-8b\n"
                 "  ridge roofline --hw h200-sxm --model llama-3.1-8b --output roofline.svg\n"
                 "\n'ridge COMMAND --help' explains a command.\n");
}

/* " (also --prompt, --context)" */
static const char *also(const rg_command *command, const rg_option *option, char *text, size_t size)
{
    const char *names[128] = {NULL};
    int count = 0;
    for (const rg_option *o = command ? command->options : NULL; o && o->name && count < 127; o++)
        names[count++] = o->name;
    const char *const *same = rg_text_synonyms(option->name);
    const char *before = " (also --";
    size_t used = 0;
    text[0] = 0;
    for (; same && *same; same++) {
        if (rg_text_synonym(*same, names) != option->name || strcmp(*same, option->name) == 0)
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s", before, *same);
        before = ", --";
    }
    if (used)
        snprintf(text + used, size - used, ")");
    return text;
}

static void print_option(FILE *out, const rg_command *command, const rg_option *o)
{
    char left[64], others[80];
    snprintf(left, sizeof left, "%c%c%s --%s%s%s", o->letter ? '-' : ' ',
             o->letter ? o->letter : ' ', o->letter ? "," : " ", o->name, o->argument ? " " : "",
             o->argument ? o->argument : "");
    fprintf(out, "  %-28s %s%s", left, o->help, also(command, o, others, sizeof others));
    if (o->fallback)
        fprintf(out, " [%s]", o->fallback);
    fprintf(out, "%s\n", o->repeatable ? " (repeatable)" : "");
}

/* Lines of more than 96 letters are folded at blanks; shorter ones stay as they are. */
static void print_folded(FILE *out, const char *text)
{
    enum { MOST = 96 };
    fputc('\n', out);
    while (*text) {
        size_t n = strcspn(text, "\n");
        if (n > MOST) {
            n = MOST;
            while (n > 0 && text[n] != ' ')
                n--;
            n = n > 0 ? n : strcspn(text, " \n");
        }
        fprintf(out, "%.*s\n", (int)n, text);
        text += n + (text[n] != 0);
    }
}

static void print_examples(FILE *out, const char *text)
{
    fputs("\nexamples:\n", out);
    while (*text) {
        const size_t n = strcspn(text, "\n");
        fprintf(out, "%s%.*s\n", *text == ' ' ? "" : "  ", (int)n, text);
        text += n + (text[n] != 0);
    }
}

void rg_help_command(FILE *out, const rg_command *command)
{
    fprintf(out, "ridge %s: %s\n\nusage: ridge %s [OPTION...]%s%s\n", command->name,
            command->summary, command->name, command->operands ? " " : "",
            command->operands ? command->operands : "");
    if (command->description)
        print_folded(out, command->description);
    if (command->options && command->options->name)
        fprintf(out, "\noptions:\n");
    for (const rg_option *o = command->options; o && o->name; o++)
        print_option(out, command, o);
    fprintf(out, "\nof every command:\n");
    for (const rg_option *o = rg_common_options; o->name; o++)
        print_option(out, NULL, o);
    if (command->examples)
        print_examples(out, command->examples);
}

/* Text for man(7): backslashes, leading dots and dashes need care. */
static void man_text(FILE *out, const char *text)
{
    bool line_start = true;
    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else
            fputc(*text, out);
        line_start = *text == '\n';
    }
}

static void man_option(FILE *out, const rg_command *command, const rg_option *o)
{
    char others[80];
    fputs(".TP\n", out);
    if (o->letter)
        fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", out);
    man_text(out, o->name);
    fputs("\\fR", out);
    if (o->argument)
        fprintf(out, " \\fI%s\\fR", o->argument);
    fputs("\n", out);
    man_text(out, o->help);
    man_text(out, also(command, o, others, sizeof others));
    if (o->fallback) {
        fputs(" (default: ", out);
        man_text(out, o->fallback);
        fputs(")", out);
    }
    fputs("\n", out);
}

void rg_help_man(FILE *out)
{
    fprintf(out,
            ".TH RIDGE 1 \"\" \"ridge %s\" \"User Commands\"\n.SH NAME\nridge \\- tell how fast an "
            "AI accelerator runs an LLM, why, and what to buy\n.SH SYNOPSIS\n.B ridge\n.I "
            "COMMAND\n[\\fIOPTION\\fR...] [\\fIFILE\\fR...]\n.SH DESCRIPTION\n",
            RG_VERSION);
    man_text(out,
             "Hardware descriptions and model specs in YAML go in; times, bottlenecks, memory, "
             "roofline plots, serving percentiles, least-cost plans and CI verdicts come out. "
             "Results go to stdout, all else to stderr.\n");
    fputs(".SH COMMON OPTIONS\n", out);
    for (const rg_option *o = rg_common_options; o->name; o++)
        man_option(out, NULL, o);
    fputs(".SH COMMANDS\n", out);
    for (int i = 0; rg_commands[i]; i++) {
        const rg_command *command = rg_commands[i];
        fprintf(out, ".SS ridge %s%s%s\n", command->name, command->operands ? " " : "",
                command->operands ? command->operands : "");
        man_text(out, command->summary);
        fputs(".\n", out);
        if (command->description) {
            fputs(".PP\n", out);
            for (const char *c = command->description; *c;) {
                const size_t n = strcspn(c, "\n");
                char line[1024];
                snprintf(line, sizeof line, "%.*s", (int)n, c);
                man_text(out, line);
                fputs(n ? "\n" : ".PP\n", out);
                c += n + (c[n] == '\n');
            }
        }
        for (const rg_option *o = command->options; o && o->name; o++)
            man_option(out, command, o);
        if (command->examples) {
            fputs(".PP\n.nf\n", out);
            man_text(out, command->examples);
            fputs("\n.fi\n", out);
        }
    }
    fputs(".SH EXIT STATUS\n", out);
    man_text(out, exit_codes);
    fputs(".\n.SH FILES\n", out);
    man_text(out,
             "Hardware and model files are looked up under $RIDGE_DATA, the current folder and "
             "the installed share/ridge.\n");
}

void rg_help_completion(FILE *out)
{
    fputs("# bash completion for ridge, printed by 'ridge help --completion'\n_ridge()\n{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        mapfile -t COMPREPLY < <(compgen -W \"",
          out);
    for (int i = 0; rg_commands[i]; i++)
        fprintf(out, "%s ", rg_commands[i]->name);
    fputs("probe\" -- \"$word\")\n        return\n    fi\n    case $last in\n"
          "        --hw) mapfile -t COMPREPLY < <(compgen -W \"$(ridge list hw -q -f csv "
          "2>/dev/null | "
          "tail -n +2 | cut -d, -f1)\" -- \"$word\"); return ;;\n"
          "        --model) mapfile -t COMPREPLY < <(compgen -W \"$(ridge list models -q -f csv "
          "2>/dev/null | tail -n +2 | cut -d, -f1)\" -- \"$word\"); return ;;\n"
          "    esac\n    local options=\"",
          out);
    for (const rg_option *o = rg_common_options; o->name; o++)
        fprintf(out, "--%s ", o->name);
    fputs("\"\n    case ${COMP_WORDS[1]} in\n", out);
    for (int i = 0; rg_commands[i]; i++) {
        fprintf(out, "        %s) options+=\"", rg_commands[i]->name);
        for (const rg_option *o = rg_commands[i]->options; o && o->name; o++)
            fprintf(out, "--%s ", o->name);
        fputs("\" ;;\n", out);
    }
    fputs("    esac\n    if [[ $word == -* ]]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
          "    else\n        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n    fi\n}\n"
          "complete -o filenames -F _ridge ridge\n",
          out);
}

static rg_status run_help(rg_arena *arena, const rg_args *args, rg_err *err)
{
    (void)arena;
    if (rg_arg_flag(args, "man")) {
        rg_help_man(stdout);
        return RG_OK;
    }
    if (rg_arg_flag(args, "completion")) {
        rg_help_completion(stdout);
        return RG_OK;
    }
    const char *name = rg_arg_operand(args, 0);
    if (!name) {
        rg_help_all(stdout);
        return RG_OK;
    }
    const rg_command *command = rg_command_find(name);
    if (!command) {
        const char *nearest = rg_command_nearest(name);
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "no command '%s'%s%s%s", name,
                       nearest ? "; did you mean '" : "", nearest ? nearest : "",
                       nearest ? "'?" : "");
    }
    rg_help_command(stdout, command);
    return RG_OK;
}

static const rg_option help_options[] = {
    {"man", 0, NULL, NULL, "print the man page", false},
    {"completion", 0, NULL, NULL, "print the completion script for bash", false},
    {NULL, 0, NULL, NULL, NULL, false},
};

extern const rg_command rg_cmd_help;
const rg_command rg_cmd_help = {
    .name = "help",
    .group = "about ridge",
    .summary = "explain a command, or list them",
    .operands = "[COMMAND]",
    .least_operands = 0,
    .most_operands = 1,
    .examples = "  ridge help estimate\n  ridge help --man | man -l -",
    .options = help_options,
    .run = run_help,
};

/* Each script is a list of cases: the verb, the words before the cursor, and the words that may follow. The scripts use
 * their shell alone, so bash-completion need not be installed. */
#include "base/complete.h"
#include "base/names.h"

#include <stdio.h>
#include <string.h>

static const char *const shells[N_SHELLS] = { SHELL_LIST(ROW_TEXT) };

bool
shell_parse(const char *text, Shell *out)
{
	int i;
	bool found = names_find((Names){ N_SHELLS, shells }, text, &i);
	*out = found ? (Shell)i : *out;
	return found;
}

/* ---- all shells ---- */

static bool
takes_file(const CompleteOption *o)
{
	return o->argument && strcmp(o->argument, "FILE") == 0;
}

/* May be left out, and can only follow "=". */
static bool
is_optional(const CompleteOption *o)
{
	return o->argument && *o->argument == '[';
}

/* The values of an option, or of the verb itself where option is NULL. NULL: any text. */
static const CompleteValues *
values_of(const Complete *c, const char *option, unsigned bit)
{
	for (int i = 0; i < c->n_values; i++) {
		const char *name = c->values[i].option;
		if ((c->values[i].verbs & bit) && (option ? name && strcmp(name, option) == 0 : !name))
			return &c->values[i];
	}
	return NULL;
}

static void
print_words(const char *const *word, const char *separator)
{
	for (int i = 0; word[i]; i++)
		printf("%s%s", i ? separator : "", word[i]);
}

/* The clause of the help that begins with "verb: ", or else the first; characters in `special` after a backslash, and
 * an apostrophe as `quote`. */
static void
print_help(const char *help, const char *verb, const char *special, const char *quote)
{
	size_t n = strlen(verb);
	for (const char *at = help; at && n > 0; at = strstr(at, "; ")) {
		at += at == help ? 0 : 2;
		if (strncmp(at, verb, n) == 0 && strncmp(at + n, ": ", 2) == 0) {
			help = at + n + 2;
			break;
		}
	}
	int open = 0;		/* parentheses */
	for (const char *at = help; *at && (open > 0 || strncmp(at, "; ", 2) != 0); at++) {
		open += (*at == '(') - (*at == ')');
		if (*at == '\'')
			fputs(quote, stdout);
		else
			printf(strchr(special, *at) ? "\\%c" : "%c", *at);
	}
}

/* ---- bash ---- */

static void
bash_options(const Complete *c, unsigned bit)
{
	for (int i = 0; i < c->n_options; i++) {
		const CompleteOption *o = &c->option[i];
		if (!(o->verbs & bit))
			continue;
		printf(" --%s", o->name);
		if (is_optional(o))
			printf(" --%s=", o->name);
		if (o->letter)
			printf(" -%c", o->letter);
	}
}

static void
bash_argument(const Complete *c, const CompleteVerb *verb, const CompleteOption *o)
{
	const CompleteValues *values = values_of(c, o->name, verb->bit);
	printf("\t%s:--%s", verb->name, o->name);
	if (o->letter)
		printf(" | %s:-%c", verb->name, o->letter);
	printf(") ");
	if (takes_file(o))
		printf("_%s_files \"$cur\"", c->program);
	else if (!values)
		printf(":");
	else {
		printf(values->list ? "_%s_list \"$cur\" '" : "_%s_words \"$cur\" '", c->program);
		print_words(values->word, " ");
		printf("'");
	}
	printf("; return ;;\n");
}

static void
bash_verbs(const Complete *c, const char *separator)
{
	for (int v = 0; v < c->n_verbs; v++)
		printf("%s%s", v ? separator : "", c->verb[v].name);
}

/* No blank follows words that end in "=". */
static void
bash_functions(const char *p)
{
	printf("_%s_words()\n{\n\tmapfile -t COMPREPLY < <(compgen -W \"$2\" -- \"$1\")\n"
	    "\t[[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n\treturn 0\n}\n\n", p);
	printf("_%s_list()\n{\n\tlocal head=\n\t[[ $1 == *,* ]] && head=${1%%,*},\n"
	    "\tmapfile -t COMPREPLY < <(compgen -P \"$head\" -W \"$2\" -- \"${1##*,}\")\n\t"
	    "compopt -o nospace\n}\n\n", p);
	printf("_%s_files()\n{\n\tcompopt -o filenames\n\tmapfile -t COMPREPLY < <(compgen -f -- \"$1\")\n}\n\n", p);
}

/* If COMP_WORDBREAKS contains "=", the default, "--name=value" is three words. */
static void
bash_words(const Complete *c, bool verbs)
{
	printf("\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb='%s' given=\n"
	    "\tif [[ $cur == = ]]; then\n\t\tgiven=1 cur=\n"
	    "\telif [[ $prev == = ]] && ((COMP_CWORD > 2)); then\n\t\t"
	    "given=1 prev=${COMP_WORDS[COMP_CWORD-2]}\n\tfi\n", c->verb[0].name);
	if (verbs) {
		printf("\tif ((COMP_CWORD > 1)); then\n\t\tcase ${COMP_WORDS[1]} in\n\t\t");
		bash_verbs(c, " | ");
		printf(") verb=${COMP_WORDS[1]} ;;\n\t\tesac\n\tfi\n");
	}
}

/* Arguments of options. */
static void
bash_arguments(const Complete *c)
{
	printf("\tcase $verb:$prev in\n");
	for (int v = 0; v < c->n_verbs; v++)
		for (int i = 0; i < c->n_options; i++)
			if ((c->option[i].verbs & c->verb[v].bit) && c->option[i].argument
			    && !is_optional(&c->option[i]))
				bash_argument(c, &c->verb[v], &c->option[i]);
	printf("\tesac\n\tcase $given:$verb:$prev in\n");
	for (int v = 0; v < c->n_verbs; v++)
		for (int i = 0; i < c->n_options; i++) {
			const CompleteValues *values = values_of(c, c->option[i].name, c->verb[v].bit);
			if (!(c->option[i].verbs & c->verb[v].bit) || !is_optional(&c->option[i]))
				continue;
			printf("\t1:%s:--%s) _%s_words \"$cur\" '", c->verb[v].name, c->option[i].name, c->program);
			if (values)
				print_words(values->word, " ");
			printf("'; return ;;\n");
		}
	printf("\tesac\n");
}

/* Words that verbs take as well as files. */
static void
bash_names(const Complete *c, const CompleteValues *values)
{
	printf("\tcase $verb in\n\t");
	for (int v = 0, n = 0; v < c->n_verbs; v++)
		if (values->verbs & c->verb[v].bit)
			printf(n++ ? " | %s" : "%s", c->verb[v].name);
	printf(") mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W '");
	print_words(values->word, " ");
	printf("' -- \"$cur\") ;;\n\tesac\n");
}

/* Words that are not the argument of an option: options, and arguments of the verb. */
static void
bash_rest(const Complete *c, bool verbs)
{
	const char *p = c->program;
	printf("\tif [[ $cur == -* ]]; then\n\t\tcase $verb in\n");
	for (int v = 0; v < c->n_verbs; v++) {
		printf("\t\t%s) _%s_words \"$cur\" '", verbs ? c->verb[v].name : "''", p);
		bash_options(c, c->verb[v].bit);
		printf("' ;;\n");
	}
	printf("\t\tesac\n\t\treturn\n\tfi\n");
	for (int v = 0; v < c->n_verbs; v++) {
		const CompleteValues *values = values_of(c, NULL, c->verb[v].bit);
		if (!values || values->list)
			continue;
		printf("\tif [[ $verb == %s ]] && ((COMP_CWORD > 1)); then\n\t\t_%s_words \"$cur\" '",
		    c->verb[v].name, p);
		print_words(values->word, " ");
		printf("'\n\t\treturn\n\tfi\n");
	}
	printf("\t_%s_files \"$cur\"\n", p);
	for (int i = 0; i < c->n_values; i++)
		if (!c->values[i].option && c->values[i].list)
			bash_names(c, &c->values[i]);
	if (verbs) {
		printf("\t((COMP_CWORD == 1)) && mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W '");
		bash_verbs(c, " ");
		printf("' -- \"$cur\")\n");
	}
}

static void
bash_print(const Complete *c)
{
	const char *p = c->program;
	bool verbs = *c->verb[0].name;
	printf("# bash completion of %s. Written by: %s %s bash\n\n", p, p, verbs ? "completion" : "--completion");
	bash_functions(p);
	printf("_%s()\n{\n", p);
	bash_words(c, verbs);
	bash_arguments(c);
	bash_rest(c, verbs);
	printf("\treturn 0\n}\n\ncomplete -F _%s %s\n", p, p);
}

/* ---- zsh ---- */

/* One specification of _arguments. Inside apostrophes, an apostrophe is '\''. */
static void
zsh_option(const Complete *c, const CompleteVerb *verb, const CompleteOption *o)
{
	const CompleteValues *values = values_of(c, o->name, verb->bit);
	const char *equals = !o->argument ? "" : is_optional(o) ? "=-" : "=";
	printf(" \\\n\t\t\t");
	if (o->letter)
		printf("'(-%c --%s)'{-%c%s,--%s%s}'[", o->letter, o->name, o->letter, o->argument ? "+" : "",
		    o->name, equals);
	else
		printf("'--%s%s[", o->name, equals);
	print_help(o->help, verb->name, "[]\\:", "'\\''");
	printf("]");
	if (o->argument) {
		printf("%s:%s:", is_optional(o) ? ":" : "", o->name);
		if (takes_file(o)) {
			printf("_files");
		} else if (values) {
			printf(values->list ? "_sequence compadd - " : "(");
			print_words(values->word, " ");
			printf(values->list ? "" : ")");
		} else {
			printf(" ");
		}
	}
	printf("'");
}

/* The verb is removed from the words that _arguments sees; without one, verbs and files are offered. */
static void
zsh_verbs(const Complete *c)
{
	printf("\tlocal -a verbs=(\n");
	for (int v = 0; v < c->n_verbs; v++) {
		printf("\t\t'%s:", c->verb[v].name);
		print_help(c->verb[v].help, "", ":\\", "'\\''");
		printf("'\n");
	}
	printf("\t)\n\tif (( CURRENT > 2 )) && [[ -n ${(M)verbs:#$words[2]:*} ]]; then\n\t\tverb=$words[2]\n"
	    "\t\tshift words\n\t\t(( CURRENT-- ))\n"
	    "\telif (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n\t\t_alternative 'verbs:verb:{"
	    "_describe verb verbs}' 'files:file:_files'");
	const CompleteValues *values = values_of(c, NULL, c->verb[0].bit);
	if (values && values->list) {
		printf(" 'names:name:(");
		print_words(values->word, " ");
		printf(")'");
	}
	printf("\n\t\treturn\n\tfi\n");
}

static void
zsh_case(const Complete *c, const CompleteVerb *verb)
{
	const CompleteValues *values = values_of(c, NULL, verb->bit);
	printf("\t%s)\n\t\t_arguments -s -S", *verb->name ? verb->name : "''");
	for (int i = 0; i < c->n_options; i++)
		if (c->option[i].verbs & verb->bit)
			zsh_option(c, verb, &c->option[i]);
	printf(" \\\n\t\t\t'*:");
	if (values && values->list) {
		printf("file: _alternative \"files:file:_files\" \"names:name:(");
		print_words(values->word, " ");
		printf(")\"'\n");
	} else if (values) {
		printf("word:(");
		print_words(values->word, " ");
		printf(")'\n");
	} else {
		printf("file:_files'\n");
	}
	printf("\t\t;;\n");
}

static void
zsh_print(const Complete *c)
{
	const char *p = c->program;
	bool verbs = *c->verb[0].name;
	printf("#compdef %s\n# zsh completion of %s. Written by: %s %s zsh\n\n_%s() {\n\tlocal verb=%s\n", p, p, p,
	    verbs ? "completion" : "--completion", p, verbs ? c->verb[0].name : "''");
	if (verbs)
		zsh_verbs(c);
	printf("\tcase $verb in\n");
	for (int v = 0; v < c->n_verbs; v++)
		zsh_case(c, &c->verb[v]);
	printf("\tesac\n}\n\nif [ \"$funcstack[1]\" = _%s ]; then\n\t_%s \"$@\"\nelse\n\tcompdef _%s %s\nfi\n",
	    p, p, p, p);
}

/* ---- fish ---- */

static void
fish_option(const Complete *c, const CompleteVerb *verb, const CompleteOption *o)
{
	const CompleteValues *values = values_of(c, o->name, verb->bit);
	printf("complete -c %s", c->program);
	if (*verb->name)
		printf(" -n '__%s_verb %s'", c->program, verb->name);
	if (o->letter)
		printf(" -s %c", o->letter);
	printf(" -l %s", o->name);
	if (takes_file(o))
		printf(" -r -F");
	else if (o->argument)
		printf(is_optional(o) ? " -f" : " -x");
	if (values) {
		printf(values->list ? " -a '(__fish_append , " : " -a '");
		print_words(values->word, " ");
		printf(values->list ? ")'" : "'");
	}
	printf(" -d '");
	print_help(o->help, verb->name, "\\", "\\'");
	printf("'\n");
}

static void
fish_print(const Complete *c)
{
	const char *p = c->program;
	bool verbs = *c->verb[0].name;
	printf("# fish completion of %s. Written by: %s %s fish\n\n", p, p, verbs ? "completion" : "--completion");
	if (verbs) {
		printf("function __%s_verb\n\tset -l words (commandline -opc)\n\tset -l verb %s\n\tif set -q words[2]; "
		    "and contains -- $words[2]", p, c->verb[0].name);
		for (int v = 0; v < c->n_verbs; v++)
			printf(" %s", c->verb[v].name);
		printf("\n\t\tset verb $words[2]\n\tend\n\ttest $verb = $argv[1]\nend\n\n");
		for (int v = 0; v < c->n_verbs; v++) {
			printf("complete -c %s -n 'test (count (commandline -opc)) -eq 1' -a %s -d '", p,
			    c->verb[v].name);
			print_help(c->verb[v].help, "", "\\", "\\'");
			printf("'\n");
		}
	}
	for (int v = 0; v < c->n_verbs; v++) {
		const CompleteValues *values = values_of(c, NULL, c->verb[v].bit);
		if (values) {
			printf("complete -c %s -n '__%s_verb %s'%s -a '", p, p, c->verb[v].name,
			    values->list ? "" : " -f");
			print_words(values->word, " ");
			printf("'\n");
		}
		for (int i = 0; i < c->n_options; i++)
			if (c->option[i].verbs & c->verb[v].bit)
				fish_option(c, &c->verb[v], &c->option[i]);
	}
}

void
complete_print(const Complete *c, Shell shell)
{
	switch (shell) {
	case SHELL_BASH:
		bash_print(c);
		break;
	case SHELL_ZSH:
		zsh_print(c);
		break;
	default:
		fish_print(c);
	}
}

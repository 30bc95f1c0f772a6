// SPDX-License-Identifier: GPL-2.0-only
#include "display_filter.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DEEPEST	  32
#define WORD_SIZE 80

struct parser {
	struct display_filter *filter;
	const char *at;
	char word[WORD_SIZE]; /* the next token; "" at the end */
	int depth;
};

static bool __attribute__((format(printf, 2, 3))) fail(struct parser *p, const char *format, ...)
{
	va_list args;

	if (p->filter->error[0])
		return false; /* the first says it */
	va_start(args, format);
	vsnprintf(p->filter->error, sizeof(p->filter->error), format, args);
	va_end(args);
	return false;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("._:/-", c));
}

/* read the next token */
static bool next(struct parser *p)
{
	size_t length = 0;

	while (isspace((unsigned char)*p->at))
		p->at++;
	if (is_word(*p->at)) {
		while (is_word(p->at[length]))
			length++;
	} else if (*p->at) {
		static const char *const pairs[] = {"&&", "||", "==", "!=", "<=", ">="};

		length = 1;
		for (unsigned int i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
			if (!strncmp(p->at, pairs[i], 2))
				length = 2;
		}
	}
	if (length >= sizeof(p->word))
		return fail(p, "a word is too long");
	memcpy(p->word, p->at, length);
	p->word[length] = '\0';
	p->at += length;
	return true;
}

static bool is(const struct parser *p, const char *sign, const char *name)
{
	return !strcmp(p->word, sign) || (name && !strcmp(p->word, name));
}

/* a new node's number, or -1 */
static int add(struct parser *p, enum filter_operator op, int left, int right)
{
	struct display_filter *f = p->filter;

	if (f->nodes == FILTER_NODES) {
		fail(p, "it is too long");
		return -1;
	}
	f->node[f->nodes] = (struct filter_node){.op = op, .left = left, .right = right};
	return f->nodes++;
}

static bool read_number(struct parser *p, struct filter_node *node)
{
	char *end;

	errno = 0;
	node->number = strtoull(p->word, &end, 0);
	if (isdigit((unsigned char)p->word[0]) && !*end && !errno)
		return true;
	/* flags */
	node->number = !strcasecmp(p->word, "true");
	return node->number || !strcasecmp(p->word, "false") ||
	       fail(p, "%s takes a number, not '%s'", node->field->name, p->word);
}

static bool read_ether(struct parser *p, struct filter_node *node)
{
	unsigned int byte[6];
	int end = 0;

	node->prefix = 48;
	if (sscanf(p->word, "%2x:%2x:%2x:%2x:%2x:%2x%n", &byte[0], &byte[1], &byte[2], &byte[3],
		   &byte[4], &byte[5], &end) != 6 ||
	    p->word[end])
		return fail(p, "%s takes an Ethernet address, not '%s'", node->field->name,
			    p->word);
	for (int i = 0; i < 6; i++)
		node->address[i] = byte[i];
	return true;
}

/* "10.0.0.1", "fe80::/10" */
static bool read_ip(struct parser *p, struct filter_node *node)
{
	int family = node->field->kind == FIELD_IPV4 ? AF_INET : AF_INET6;
	char address[WORD_SIZE], *slash, *end = "";

	strcpy(address, p->word);
	slash = strchr(address, '/');
	node->prefix = node->field->bytes * 8;
	if (slash) {
		*slash = '\0';
		errno = 0;
		node->prefix = isdigit((unsigned char)slash[1]) ? strtol(slash + 1, &end, 10) : -1;
	}
	if (*end || node->prefix < 0 || node->prefix > node->field->bytes * 8 ||
	    inet_pton(family, address, node->address) != 1)
		return fail(p, "%s takes an address, not '%s'", node->field->name, p->word);
	return true;
}

static bool read_value(struct parser *p, struct filter_node *node)
{
	switch (node->field->kind) {
	case FIELD_NUMBER:
		return read_number(p, node);
	case FIELD_ETHER:
		return read_ether(p, node);
	case FIELD_IPV4:
	case FIELD_IPV6:
		return read_ip(p, node);
	default:
		return fail(p, "%s has no value to compare", node->field->name);
	}
}

static bool read_operator(const struct parser *p, enum filter_operator *op)
{
	static const struct {
		const char *sign, *name;
	} operators[] = {
		[FILTER_EQ] = {"==", "eq"}, [FILTER_NE] = {"!=", "ne"}, [FILTER_LT] = {"<", "lt"},
		[FILTER_LE] = {"<=", "le"}, [FILTER_GT] = {">", "gt"},	[FILTER_GE] = {">=", "ge"},
	};

	for (*op = FILTER_EQ; *op <= FILTER_GE; ++*op) {
		if (is(p, operators[*op].sign, operators[*op].name))
			return true;
	}
	return false;
}

static int parse_comparison(struct parser *p)
{
	const struct field *field = field_find(p->word);
	enum filter_operator op;
	int node;

	if (!field) {
		fail(p,
		     p->word[0] ? "'%s' is no field that rxedump knows"
				: "something is missing at the end%s",
		     p->word);
		return -1;
	}
	node = next(p) ? add(p, FILTER_EXISTS, -1, -1) : -1;
	if (node < 0)
		return -1;
	p->filter->node[node].field = field;
	if (!read_operator(p, &op))
		return node;
	p->filter->node[node].op = op;
	if (field->kind != FIELD_NUMBER && op > FILTER_NE) {
		fail(p, "%s can be compared by == and != only", field->name);
		return -1;
	}
	return next(p) && read_value(p, &p->filter->node[node]) && next(p) ? node : -1;
}

static int parse_or(struct parser *p);

static int parse_term(struct parser *p)
{
	int node;

	if (++p->depth > DEEPEST) {
		fail(p, "it is nested too deeply");
		return -1;
	}
	if (is(p, "!", "not")) {
		node = next(p) ? parse_term(p) : -1;
		node = node < 0 ? -1 : add(p, FILTER_NOT, node, -1);
	} else if (is(p, "(", NULL)) {
		node = next(p) ? parse_or(p) : -1;
		if (node >= 0 && !is(p, ")", NULL)) {
			fail(p, "a ) is missing");
			node = -1;
		}
		node = node < 0 || !next(p) ? -1 : node;
	} else {
		node = parse_comparison(p);
	}
	p->depth--;
	return node;
}

static int parse_and(struct parser *p)
{
	int left = parse_term(p);

	while (left >= 0 && is(p, "&&", "and")) {
		int right = next(p) ? parse_term(p) : -1;

		left = right < 0 ? -1 : add(p, FILTER_AND, left, right);
	}
	return left;
}

static int parse_or(struct parser *p)
{
	int left = parse_and(p);

	while (left >= 0 && is(p, "||", "or")) {
		int right = next(p) ? parse_and(p) : -1;

		left = right < 0 ? -1 : add(p, FILTER_OR, left, right);
	}
	return left;
}

bool display_filter_parse(struct display_filter *f, const char *text)
{
	struct parser p = {.filter = f, .at = text};

	f->nodes = 0;
	f->error[0] = '\0';
	f->root = next(&p) ? parse_or(&p) : -1;
	if (f->root >= 0 && p.word[0])
		fail(&p, "'%s' is out of place", p.word);
	return !f->error[0];
}

static bool same_address(const struct filter_node *node, const __u8 *bytes)
{
	int whole = node->prefix / 8, rest = node->prefix % 8;

	return !memcmp(node->address, bytes, whole) &&
	       (!rest || !((node->address[whole] ^ bytes[whole]) >> (8 - rest)));
}

static bool holds(const struct filter_node *node, const struct frame_headers *h, const __u8 *bytes)
{
	__u64 number;

	if (node->field->kind != FIELD_NUMBER)
		return same_address(node, bytes) == (node->op == FILTER_EQ);
	number = field_number(node->field, h, bytes);
	switch (node->op) {
	case FILTER_EQ:
		return number == node->number;
	case FILTER_NE:
		return number != node->number;
	case FILTER_LT:
		return number < node->number;
	case FILTER_LE:
		return number <= node->number;
	case FILTER_GT:
		return number > node->number;
	default:
		return number >= node->number;
	}
}

static bool compare(const struct filter_node *node, const struct frame_headers *h)
{
	const __u8 *first = field_bytes(node->field, h, 0), *second;

	if (!first || node->op == FILTER_EXISTS)
		return first;
	second = field_bytes(node->field, h, 1);
	if (!second)
		return holds(node, h, first);
	return node->op == FILTER_NE ? holds(node, h, first) && holds(node, h, second)
				     : holds(node, h, first) || holds(node, h, second);
}

/* the parser bounds the depth of brackets; a node's children have lower numbers */
static bool passes(const struct display_filter *f, int number, const struct frame_headers *h)
{
	const struct filter_node *node = &f->node[number];

	switch (node->op) {
	case FILTER_AND:
		return passes(f, node->left, h) && passes(f, node->right, h);
	case FILTER_OR:
		return passes(f, node->left, h) || passes(f, node->right, h);
	case FILTER_NOT:
		return !passes(f, node->left, h);
	default:
		return compare(node, h);
	}
}

bool display_filter_passes(const struct display_filter *f, const struct frame_headers *h)
{
	return f->root < 0 || passes(f, f->root, h);
}

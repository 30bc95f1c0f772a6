// SPDX-License-Identifier: GPL-2.0-only
#include "dump_capture.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "drop.h"
#include "stage.h"
#include "version.h"

/* write when the buffer holds this much */
#define FLUSH_AT (256u << 10)

static bool writes_pcapng(const struct capture *c)
{
	return c->config->output;
}

/* a line of key=value, truncated when full */
struct text {
	char at[1024];
	size_t length;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *t, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(t->at + t->length, sizeof(t->at) - t->length, format, args);
	va_end(args);
	if (n > 0)
		t->length = t->length + n < sizeof(t->at) ? t->length + n : sizeof(t->at) - 1;
}

/* a value from outside is escaped, as in packets' comments */
static void add_value(struct text *t, const char *key, const char *value)
{
	char escaped[PACKET_PREFIX_MAX];

	if (value[0]) {
		packet_escape(escaped, value);
		add(t, " %s=%s", key, escaped);
	}
}

static void add_cost(struct text *t, const char *key, double ns)
{
	if (isfinite(ns))
		add(t, " %s=%.1f", key, ns);
}

/* the stages that this driver does not show */
static void add_missing(struct text *t, const struct driver *driver)
{
	const char *separator = " missing=";

	for (int dir = 0; dir < DIRECTIONS; dir++) {
		for (int i = 0; i < stage_count[dir]; i++) {
			if (stage_is_there(driver, dir, i))
				continue;
			add(t, "%s%s.%s", separator, direction_name(dir), stages[dir][i].name);
			separator = ",";
		}
	}
}

static void describe_session(const struct capture *c, struct text *t)
{
	const struct driver *driver = &c->session->driver;

	add(t, "rocelab.rxedump/1");
	add_value(t, "node", c->session->node);
	add(t, " driver=%s", driver->kind == DRIVER_STOCK ? "stock" : "instrumented");
	add_value(t, "version", driver->version);
	add_value(t, "srcversion", driver->srcversion);
	add_value(t, "accelerator", c->session->accelerator);
	add(t, " wall_offset_ns=%" PRIu64 " snap=%u sample=%u", (uint64_t)c->wall_ns,
	    c->config->snap_length, c->config->sample);
	add_missing(t, driver);
	add_cost(t, "clock_ns", c->cost.clock);
	add_cost(t, "probe_tx_ns", c->cost.tx);
	add_cost(t, "probe_xmit_ns", c->cost.xmit);
	add_cost(t, "probe_rx_ns", c->cost.rx);
	add_cost(t, "probe_done_ns", c->cost.done);
}

static void describe_filter(const struct config *config, struct text *t)
{
	const struct place_options *places = &config->filter.places;
	char pids[PLACE_PIDS_TEXT];
	const char *sep = "";

#define AND(...) (add(t, "%s", sep), add(t, __VA_ARGS__), sep = " and ")
	if (config->filter.device)
		AND("device %s", config->filter.device);
	if (config->filter.qpn)
		AND("qpn %u", config->filter.qpn);
	if (places->npids)
		AND("PID %s", place_options_pids(places, pids));
	if (places->cgroup)
		AND("cgroup %s", places->cgroup);
	if (places->netns)
		AND("netns %s", places->netns);
	if (config->filter.tx != config->filter.rx)
		AND("direction %s", config->filter.tx ? "tx" : "rx");
	if (config->filter.opcodes)
		AND("opcode %s", config->filter.opcodes);
	if (config->follow.qpn && config->follow.by_psn)
		AND("message with PSN %u", config->follow.psn);
	if (config->follow.qpn && !config->follow.by_psn)
		AND("message %u", config->follow.number);
	if (config->sample > 1)
		AND("sample 1 in %u", config->sample);
#undef AND
}

/* "model name : …" of the first processor */
static void read_processor(char *name, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	name[0] = '\0';
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		const char *colon = strchr(line, ':');

		if (!strncmp(line, "model name", 10) && colon) {
			snprintf(name, size, "%s", colon + 1 + strspn(colon + 1, " \t"));
			name[strcspn(name, "\n")] = '\0';
			break;
		}
	}
	fclose(f);
}

static void put_section(struct capture *c)
{
	struct text comment = {};
	char hardware[256], os[128];
	struct pcapng_section section = {
		.hardware = hardware,
		.os = os,
		.application = "rxedump (rocelab) " ROCELAB_VERSION,
		.comment = comment.at,
	};

	describe_session(c, &comment);
	read_processor(hardware, sizeof(hardware));
	if (!hardware[0])
		section.hardware = NULL;
	snprintf(os, sizeof(os), "Linux %s", c->session->driver.kernel);
	pcapng_section(&c->out.buffer, &section);
	c->described = 0;
}

/* describe those that are not in the file yet */
static void put_interfaces(struct capture *c)
{
	struct text filter = {};

	describe_filter(c->config, &filter);
	for (; c->described < c->interfaces.count; c->described++) {
		const struct interface *i = &c->interfaces.at[c->described];
		struct pcapng_interface block = {
			.name = i->name,
			.filter = filter.length ? filter.at : NULL,
			.snap_length = c->config->whole ? 0 : c->config->snap_length,
			.mac = i->has_mac ? i->mac : NULL,
		};
		char description[128];

		if (i->netdev[0]) {
			snprintf(description, sizeof(description), "rdma_rxe on %s", i->netdev);
			block.description = description;
		}
		pcapng_interface(&c->out.buffer, &block);
	}
}

void capture_reset(struct capture *c)
{
	output_reset(&c->out);
	c->interfaces.count = 0;
	c->links = (struct links){};
	c->follow = c->config->follow;
	c->described = 0;
	c->packets = 0;
	c->error = 0;
	c->losses = (struct losses){};
}

int capture_open(struct capture *c)
{
	int err = output_open(&c->out);

	if (!err && writes_pcapng(c)) {
		interfaces_add_present(&c->interfaces);
		put_section(c);
		put_interfaces(c);
		output_flush(&c->out);
		err = -c->out.error;
	}
	return err;
}

void capture_statistics(struct capture *c, __u64 now_ns)
{
	if (!writes_pcapng(c))
		return;
	for (int i = 0; i < c->described; i++) {
		const struct interface *interface = &c->interfaces.at[i];
		const __u64 *written = interface->written;
		struct pcapng_statistics block = {
			.start_ns = c->session->start_ns + c->wall_ns,
			.end_ns = now_ns + c->wall_ns,
			.lost = c->losses.interface[i],
		};
		struct text comment = {};

		for (int kind = 0; kind < DUMP_KINDS; kind++)
			block.delivered += written[kind];
		/* skipped programs do not tell the device */
		if (c->described == 1)
			block.lost += c->losses.nested;
		block.received = block.delivered + block.lost;
		add(&comment,
		    "rocelab.rxedump.statistics/1 tx=%" PRIu64 " rx=%" PRIu64 " drop=%" PRIu64
		    " lost_ring=%" PRIu64 " lost_nested=%" PRIu64 " timed_out=%" PRIu64
		    " evicted=%" PRIu64,
		    (uint64_t)written[DUMP_TX], (uint64_t)written[DUMP_RX],
		    (uint64_t)written[DUMP_DROP], (uint64_t)c->losses.interface[i],
		    (uint64_t)c->losses.nested, (uint64_t)c->losses.timed_out,
		    (uint64_t)c->losses.evicted);
		block.comment = comment.at;
		pcapng_statistics(&c->out.buffer, i, now_ns + c->wall_ns, &block);
	}
}

/* find the link header if it is not in the frame; returns whether it did */
static bool find_link(struct capture *c, const struct interface *interface, struct packet *p,
		      __u8 link[LINK_LEN])
{
	bool sent = packet_is_tx(p);

	if (p->rec->has_link)
		return false;
	if (sent && p->closed && p->late.has_link) {
		memcpy(link, p->late.link, LINK_LEN);
		link_learn(&c->links, p->rec, link);
	} else {
		link_make(&c->links, interface, p->rec, sent, link);
		p->link_made = true;
	}
	return true;
}

static void put_packet(struct capture *c, const struct packet *p, int number,
		       const __u8 link[LINK_LEN], const char *text, size_t text_length)
{
	const struct dump_record *rec = p->rec;
	struct pcapng_buffer *b = &c->out.buffer;
	size_t begin;

	begin = pcapng_packet_begin(b, number, rec->id.begin + c->wall_ns,
				    rec->length + (link ? LINK_LEN : 0));
	if (link) {
		size_t n = c->config->snap_length < LINK_LEN ? c->config->snap_length : LINK_LEN;

		memcpy(b->data + b->length, link, n);
		b->length += n;
	}
	memcpy(b->data + b->length, rec->frame, rec->captured);
	if (packet_is_tx(p))
		link_ipv4_checksum((__u8 *)b->data + b->length, rec->captured);
	b->length += rec->captured;
	pcapng_packet_end(b, begin, packet_is_tx(p) ? PCAPNG_OUTBOUND : PCAPNG_INBOUND, text,
			  text_length);
}

/* "11:22:33.123456789", then the comment without the name of the format */
static void put_line(struct capture *c, const struct packet *p, const char *text, size_t length)
{
	__u64 ns = p->rec->id.begin + c->wall_ns;
	time_t seconds = ns / 1000000000;
	const char *rest = memchr(text, ' ', length);
	struct pcapng_buffer *b = &c->out.buffer;
	struct tm tm;

	localtime_r(&seconds, &tm);
	b->length += sprintf(b->data + b->length, "%02d:%02d:%02d.%09u", tm.tm_hour, tm.tm_min,
			     tm.tm_sec, (unsigned int)(ns % 1000000000));
	length -= rest - text;
	memcpy(b->data + b->length, rest, length);
	b->length += length;
	b->data[b->length++] = '\n';
}

/* a full file ends with its statistics, for which there is always room */
static bool make_room(struct capture *c, size_t block)
{
	if (!pcapng_room(&c->out.buffer, block))
		return false;
	if (c->config->file_mb && output_is_full(&c->out, block + c->described * 512)) {
		capture_statistics(c, clock_now(CLOCK_MONOTONIC));
		c->error = output_next(&c->out);
		if (c->error)
			return false;
		put_section(c);
		put_interfaces(c);
	}
	return pcapng_room(&c->out.buffer, block);
}

bool capture_packet(struct capture *c, struct packet *p)
{
	bool sent = packet_is_tx(p);
	char text[PACKET_TEXT_MAX];
	struct interface *interface;
	__u8 link[LINK_LEN];
	bool with_link;
	size_t length;
	int number;

	/* rxe_drop is an event of both directions */
	if (sent ? !c->config->filter.tx : !c->config->filter.rx)
		return true;
	number = interfaces_get(&c->interfaces, p->rec->id.dev);
	interface = &c->interfaces.at[number];
	with_link = find_link(c, interface, p, link);
	if (c->config->follow.qpn && !follow_takes(&c->follow, p))
		return true;
	memcpy(text, interface->prefix, interface->prefix_length);
	length = packet_text(text + interface->prefix_length, p) - text;

	if (writes_pcapng(c) && c->described < c->interfaces.count)
		put_interfaces(c);
	if (!make_room(c, PCAPNG_BLOCK_MAX + length + p->rec->captured + LINK_LEN))
		return false;
	if (writes_pcapng(c)) {
		put_packet(c, p, number, with_link ? link : NULL, text, length);
	} else {
		put_line(c, p, text, length);
	}
	interface->written[p->rec->kind]++;
	c->packets++;
	if (c->out.buffer.length >= FLUSH_AT && !output_flush(&c->out))
		return false;
	return !c->config->count || c->packets < c->config->count;
}

int capture_close(struct capture *c, __u64 now_ns)
{
	capture_statistics(c, now_ns);
	return output_close(&c->out) ?: c->error;
}

void capture_free(struct capture *c)
{
	output_free(&c->out);
}

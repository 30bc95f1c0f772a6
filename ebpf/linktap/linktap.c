// SPDX-License-Identifier: GPL-2.0-only
/*
 * linktap -w FILE [-s SNAPLEN] [-C BYTES] [-Q in] INTERFACE...
 *
 * Capture what crosses a link, each frame once.
 *
 * With several interfaces, the ends of a link that are all on this machine, it captures each frame
 * where it arrives. A capture at the sending end, as by tcpdump, copies frames before the driver is
 * done with them, and that work would be part of the sender's stage `xmit`. Capturing only arriving
 * frames costs a sender next to nothing, and one socket for all ends keeps their order. With one
 * interface it captures what that sends and receives, like tcpdump; with -Q in (as in tcpdump) only
 * what it receives, for a link whose ends are captured on their own machines.
 *
 * Writes until SIGINT or SIGTERM, and then all frames that arrived before the signal. Prints the
 * number of frames, and fails if the kernel dropped one. With -C the file holds at most so many
 * bytes; the frames that come later are only counted, by what they are (count.h), and standard
 * output has these counts at the end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "count.h"
#include "msg.h"
#include "pcap.h"

#define WHOLE_FRAMES 65535
#define QUEUE_BYTES  (256 << 20)
#define MAX_FRAME    (1 << 18)
#define FILE_BUFFER  (1 << 20)
#define MAX_ENDS     16
/* SO_TIMESTAMPNS and PACKET_AUXDATA */
#define CONTROL_BYTES 256

#define VLAN_TAG      4 /* bytes */

/* a VLAN tag that the kernel, or the card, has taken out of a frame */
struct vlan_tag {
	bool there;
	uint16_t tpid, tci;
};

struct options {
	const char *file;
	uint32_t snaplen;
	uint64_t most_bytes; /* 0: no limit */
	int arriving;
	unsigned int ifindex[MAX_ENDS];
	int ends;
};

static int usage(void)
{
	fprintf(stderr, "usage: linktap -w FILE [-s SNAPLEN] [-C BYTES] [-Q in] INTERFACE...\n");
	return EXIT_USAGE;
}

static int parse(int argc, char **argv, struct options *options)
{
	char *end;
	int c;

	options->snaplen = WHOLE_FRAMES;
	while ((c = getopt(argc, argv, "w:s:C:Q:")) != -1) {
		if (c == 'w') {
			options->file = optarg;
		} else if (c == 's') {
			unsigned long snaplen = strtoul(optarg, &end, 10);

			if (*end || !snaplen || snaplen > MAX_FRAME)
				return usage();
			options->snaplen = snaplen;
		} else if (c == 'C') {
			options->most_bytes = strtoull(optarg, &end, 10);
			if (*end || !options->most_bytes)
				return usage();
		} else if (c == 'Q' && !strcmp(optarg, "in")) {
			options->arriving = 1;
		} else {
			return usage();
		}
	}
	options->ends = argc - optind;
	if (!options->file || options->ends < 1 || options->ends > MAX_ENDS)
		return usage();
	if (options->ends > 1)
		options->arriving = 1;
	for (int i = 0; i < options->ends; i++) {
		const char *name = argv[optind + i];

		options->ifindex[i] = if_nametoindex(name);
		if (!options->ifindex[i])
			return msg_error(EXIT_USAGE, "it was deleted, or never created",
					 "list the interfaces: ip link", "no interface '%s'", name);
	}
	return 0;
}

/* the kernel's filter: frames of these interfaces, cut to the snap length */
static int attach_filter(int fd, const struct options *options)
{
	struct sock_filter code[MAX_ENDS + 3] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_IFINDEX),
	};
	struct sock_fprog program = {options->ends + 3, code};
	struct sock_filter *next = code + 1;

	/* skips the remaining comparisons and the rejection */
	for (int i = 0; i < options->ends; i++)
		*next++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						       options->ifindex[i], options->ends - i, 0);
	*next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	*next = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, options->snaplen);
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

static int open_socket(const struct options *options)
{
	struct sockaddr_ll every = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	int on = 1, size = QUEUE_BYTES;
	/* protocol 0 hears nothing: the socket is bound when it is ready */
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || attach_filter(fd, options) ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &options->arriving,
		       sizeof(options->arriving)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) ||
	    bind(fd, (struct sockaddr *)&every, sizeof(every))) {
		msg_error(EXIT_RUN, "it needs root, and a kernel with packet sockets",
			  "run it as root", "cannot capture: %s", strerror(errno));
		return -1;
	}
	return fd;
}

/* what the kernel reports about a frame in addition to its bytes */
static void read_control(struct msghdr *message, struct timespec *when, uint32_t *length,
			 struct vlan_tag *tag)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
			memcpy(when, CMSG_DATA(c), sizeof(*when));
		} else if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA) {
			struct tpacket_auxdata aux;

			memcpy(&aux, CMSG_DATA(c), sizeof(aux));
			*length = aux.tp_len;
			if (aux.tp_status & TP_STATUS_VLAN_VALID) {
				tag->there = true;
				tag->tpid = aux.tp_status & TP_STATUS_VLAN_TPID_VALID
						    ? aux.tp_vlan_tpid
						    : ETH_P_8021Q;
				tag->tci = aux.tp_vlan_tci;
			}
		}
	}
}

/* puts the tag back where it was on the link; there is room before the frame */
static char *put_tag(char *frame, const struct vlan_tag *tag)
{
	uint16_t words[] = {htons(tag->tpid), htons(tag->tci)};

	memmove(frame - VLAN_TAG, frame, 2 * ETH_ALEN);
	memcpy(frame - VLAN_TAG + 2 * ETH_ALEN, words, VLAN_TAG);
	return frame - VLAN_TAG;
}

/* what has been captured */
struct tally {
	FILE *file;
	uint64_t bytes; /* of the file */
	bool full;	/* the rest is only counted */
	struct counts later;
};

/* false: the file could not be written */
static bool keep(struct tally *tally, const struct options *options, const struct timespec *when,
		 const char *frame, uint32_t captured, uint32_t length)
{
	if (options->most_bytes) {
		tally->bytes += PCAP_RECORD_BYTES + captured;
		tally->full = tally->full || tally->bytes > options->most_bytes;
		count_frame(&tally->later, (const uint8_t *)frame, captured, length, !tally->full);
	}
	return tally->full || pcap_frame(tally->file, when, frame, captured, length);
}

/* writes the queued frames; returns their number, or -1 */
static long drain(int fd, const struct options *options, struct tally *tally)
{
	static char space[VLAN_TAG + MAX_FRAME];
	static char control[CONTROL_BYTES] __attribute__((aligned(16)));
	long frames = 0;

	for (;;) {
		char *frame = space + VLAN_TAG;
		struct iovec part = {frame, MAX_FRAME};
		struct msghdr message = {.msg_iov = &part,
					 .msg_iovlen = 1,
					 .msg_control = control,
					 .msg_controllen = sizeof(control)};
		ssize_t captured = recvmsg(fd, &message, 0);
		struct timespec when = {};
		struct vlan_tag tag = {};
		uint32_t length = captured;

		if (captured < 0 && errno == EINTR)
			continue;
		if (captured < 0)
			return errno == EAGAIN ? frames : -1;
		read_control(&message, &when, &length, &tag);
		if (tag.there && captured >= 2 * ETH_ALEN) {
			frame = put_tag(frame, &tag);
			length += VLAN_TAG;
			captured += VLAN_TAG;
			if (captured > options->snaplen)
				captured = options->snaplen;
		}
		if (!keep(tally, options, &when, frame, captured, length))
			return -1;
		frames++;
	}
}

/* captures until a signal; returns the number of frames, or -1 */
static long capture(int fd, int signals, const struct options *options, struct tally *tally)
{
	struct pollfd wait[] = {{.fd = fd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
	long frames = 0;

	for (;;) {
		long more;

		if (poll(wait, 2, -1) < 0 && errno != EINTR)
			return -1;
		more = drain(fd, options, tally);
		if (more < 0)
			return -1;
		frames += more;
		if (wait[1].revents)
			return frames;
	}
}

static int finish(int fd, long frames, const struct options *options, struct tally *tally)
{
	struct tpacket_stats stats = {};
	socklen_t size = sizeof(stats);

	if (frames < 0 || fclose(tally->file))
		return msg_not_written(options->file, -errno);
	if (options->most_bytes)
		count_print(&tally->later, stdout);
	if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size))
		return msg_error(EXIT_RUN, NULL, NULL, "cannot read what was lost: %s",
				 strerror(errno));
	if (stats.tp_drops)
		return msg_error(EXIT_RUN, "frames came faster than they were written",
				 "capture less of each with -s", "%u frames were lost",
				 stats.tp_drops);
	msg("%ld frames", frames);
	return 0;
}

int main(int argc, char **argv)
{
	struct options options = {};
	sigset_t ends;
	static struct tally tally = {.bytes = PCAP_FILE_BYTES};
	int status, signals, fd;

	msg_program = "linktap";
	status = parse(argc, argv, &options);
	if (status)
		return status;
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	signals = signalfd(-1, &ends, SFD_CLOEXEC);
	if (signals < 0)
		return msg_error(EXIT_RUN, NULL, NULL, "cannot wait for signals: %s",
				 strerror(errno));
	/* before the file: who may not capture keeps what it held */
	fd = open_socket(&options);
	if (fd < 0)
		return EXIT_RUN;
	tally.file = fopen(options.file, "we");
	if (!tally.file)
		return msg_not_opened(options.file, -errno);
	if (setvbuf(tally.file, NULL, _IOFBF, FILE_BUFFER) ||
	    !pcap_begin(tally.file, options.snaplen))
		return msg_not_written(options.file, -errno);
	msg("listening");
	return finish(fd, capture(fd, signals, &options, &tally), &options, &tally);
}

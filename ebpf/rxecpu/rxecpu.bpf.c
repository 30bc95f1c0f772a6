// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPU time by context and owner: a state machine per CPU, driven by the kernel's events of tasks,
 * system calls and interrupts, and by the driver's.
 *
 * The first word of a program's name is its feature (kernel_features.c).
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "task_owner.bpf.h"
#include "stacks.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* the text of rdma_rxe: work functions in it are the driver's; 0: unknown */
const volatile __u64 module_begin = 0;
const volatile __u64 module_end = 0;
/* only work for this device counts as the driver's */
const volatile bool one_device = false;

/* not constant: devices come and go between two windows */
__u32 device_index = 0;
__u32 device_ifindex = 0;
/* interrupts of network devices */
__u8 network_irq[MAX_IRQS] = {};

/* tasks */

SEC("tp_btf/sched_switch")
int BPF_PROG(task_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct cpu_state *cpu = event();

	if (!cpu)
		return 0;
	if (takes_stacks()) {
		stack_leave(ctx, cpu, prev, preempt || !prev->__state);
		stack_return(next);
	}
	keep_state(prev, &cpu->task);
	cpu->task = resumed_state(next);
	/* no task switches within an interrupt: repair what a missed event left */
	cpu->hardirqs = 0;
	cpu->softirq = 0;
	cpu->softirq_rxe = 0;
	return 0;
}

/* a new program: another name */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(task_exec, struct task_struct *task)
{
	struct cpu_state *cpu = event();

	if (cpu)
		cpu->task.owner = owner_of(task);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(task_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 from = parent->tgid, to = child->tgid;
	__u8 one = 1;

	if (by_pid && from != to && bpf_map_lookup_elem(&processes, &from))
		bpf_map_update_elem(&processes, &to, &one, BPF_ANY);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(task_exit, struct task_struct *task)
{
	__u32 tgid = task->tgid;

	if (by_pid && task->pid == task->tgid)
		bpf_map_delete_elem(&processes, &tgid);
	return 0;
}

SEC("raw_tp/sys_enter")
int BPF_PROG(syscall_enter)
{
	struct cpu_state *cpu = event();

	if (cpu) {
		cpu->task.context = CONTEXT_SYSCALL;
		/* of a fault that was a bad address */
		cpu->task.in &= ~IN_FAULT;
	}
	return 0;
}

SEC("raw_tp/sys_exit")
int BPF_PROG(syscall_exit)
{
	struct cpu_state *cpu = event();

	if (cpu) {
		cpu->task.context = CONTEXT_USER;
		leave_rxe(cpu);
		/* of a socket call that was refused */
		cpu->task.in &= ~IN_NETWORK;
	}
	return 0;
}

/*
 * x86 has an event where a user's fault begins, but none where it ends. It spares us a second
 * program of the function, whose coming and going makes the kernel look at all its functions twice.
 */
SEC("raw_tp/page_fault_user")
int BPF_PROG(fault_of_user)
{
	enter(IN_FAULT);
	return 0;
}

SEC("fentry/handle_mm_fault")
int BPF_PROG(fault_begin)
{
	enter(IN_FAULT);
	return 0;
}

SEC("fexit/handle_mm_fault")
int BPF_PROG(fault_end)
{
	leave(IN_FAULT);
	return 0;
}

struct sock_common {
	unsigned short skc_family;
} ROCELAB_CORE;

struct sock {
	struct sock_common __sk_common;
} ROCELAB_CORE;

struct socket {
	struct sock *sk;
} ROCELAB_CORE;

#define AF_INET	 2
#define AF_INET6 10

static __always_inline bool is_inet(const struct sock *sk)
{
	__u16 family = sk->__sk_common.skc_family;

	return family == AF_INET || family == AF_INET6;
}

/*
 * Socket calls, where the kernel has an event at their end (6.3): a function that is called at
 * their beginning. To attach to these two is cheaper than to both ends of the four below, each of
 * which makes the kernel look at all its functions three times.
 */
#define DEFINE_SOCKET_WAY(way, function, end)                       \
	SEC("fentry/" #function)                                    \
	int BPF_PROG(socket_##way##_begin, const struct socket *to) \
	{                                                           \
		if (is_inet(to->sk))                                \
			enter(IN_NETWORK);                          \
		return 0;                                           \
	}                                                           \
	SEC("tp_btf/" #end)                                         \
	int BPF_PROG(socket_##way##_end, const struct sock *sk)     \
	{                                                           \
		if (is_inet(sk))                                    \
			leave(IN_NETWORK);                          \
		return 0;                                           \
	}
DEFINE_SOCKET_WAY(send, security_socket_sendmsg, sock_send_length)
DEFINE_SOCKET_WAY(recv, security_socket_recvmsg, sock_recv_length)

#define DEFINE_SOCKET_CALL(function)          \
	SEC("fentry/" #function)              \
	int BPF_PROG(socket_##function)       \
	{                                     \
		enter(IN_NETWORK);            \
		return 0;                     \
	}                                     \
	SEC("fexit/" #function)               \
	int BPF_PROG(socket_##function##_ret) \
	{                                     \
		leave(IN_NETWORK);            \
		return 0;                     \
	}
DEFINE_SOCKET_CALL(inet_sendmsg)
DEFINE_SOCKET_CALL(inet6_sendmsg)
DEFINE_SOCKET_CALL(inet_recvmsg)
DEFINE_SOCKET_CALL(inet6_recvmsg)

typedef void (*work_func_t)(void *work);

struct work_struct {
	work_func_t func;
} ROCELAB_CORE;

SEC("tp_btf/workqueue_execute_start")
int BPF_PROG(work_begin, struct work_struct *work)
{
	__u64 function = (__u64)work->func;

	if (module_end && function >= module_begin && function < module_end) {
		enter(IN_RXE);
		if (takes_stacks())
			wait_was_for(WAITER_RXE);
	}
	return 0;
}

/* the verifier refuses its second argument, the function */
SEC("raw_tp/workqueue_execute_end")
int BPF_PROG(work_end)
{
	struct cpu_state *cpu = this_cpu();

	if (!cpu || cpu->softirq || !(cpu->task.in & IN_RXE || cpu->task.rxe_tasks))
		return 0;
	cpu = event();
	if (cpu)
		leave_rxe(cpu);
	return 0;
}

/* interrupts */

SEC("raw_tp/softirq_entry")
int BPF_PROG(softirq_begin, unsigned int number)
{
	struct cpu_state *cpu = event();

	if (cpu && number < SOFTIRQS) {
		cpu->softirq = number + 1;
		cpu->softirq_rxe = 0;
		if (takes_stacks() && number == SOFTIRQ_NET_RX &&
		    is_ksoftirqd((struct task_struct *)bpf_get_current_task_btf()))
			wait_was_for(WAITER_KSOFTIRQD);
	}
	return 0;
}

SEC("raw_tp/softirq_exit")
int BPF_PROG(softirq_end, unsigned int number)
{
	struct cpu_state *cpu = event();

	if (cpu)
		cpu->softirq = 0;
	return 0;
}

static __always_inline void hardirq_begin(__u8 owner)
{
	struct cpu_state *cpu = event();

	if (!cpu)
		return;
	if (!cpu->hardirqs)
		cpu->hardirq_owner = bounded(owner, OWNERS - 1);
	cpu->hardirqs++;
}

static __always_inline void hardirq_end(void)
{
	struct cpu_state *cpu = event();

	if (cpu && cpu->hardirqs)
		cpu->hardirqs--;
}

SEC("raw_tp/irq_handler_entry")
int BPF_PROG(irq_begin, int irq)
{
	__u32 number = irq;

	hardirq_begin(number < MAX_IRQS && network_irq[bounded(number, MAX_IRQS - 1)]
			      ? OWNER_NETWORK
			      : OWNER_OTHER);
	return 0;
}

SEC("raw_tp/irq_handler_exit")
int BPF_PROG(irq_end)
{
	hardirq_end();
	return 0;
}

/* x86: interrupts that have no handler of a device */
#define DEFINE_VECTOR(name)                 \
	SEC("raw_tp/" #name "_entry")       \
	int BPF_PROG(vector_##name##_entry) \
	{                                   \
		hardirq_begin(OWNER_OTHER); \
		return 0;                   \
	}                                   \
	SEC("raw_tp/" #name "_exit")        \
	int BPF_PROG(vector_##name##_exit)  \
	{                                   \
		hardirq_end();              \
		return 0;                   \
	}
DEFINE_VECTOR(local_timer)
DEFINE_VECTOR(reschedule)
DEFINE_VECTOR(call_function)
DEFINE_VECTOR(call_function_single)
DEFINE_VECTOR(irq_work)

/* the driver, instrumented */

SEC("raw_tp/rxe_task_begin")
int BPF_PROG(rxe_task_begin, __u32 dev)
{
	if (one_device && dev != device_index)
		return 0;
	rxe_begin();
	if (takes_stacks())
		wait_was_for(WAITER_RXE);
	return 0;
}

SEC("raw_tp/rxe_task_end")
int BPF_PROG(rxe_task_end, __u32 dev)
{
	if (!one_device || dev == device_index)
		rxe_end();
	return 0;
}

SEC("raw_tp/rxe_rx_begin")
int BPF_PROG(rxe_rx_begin, __u32 ifindex)
{
	if (!one_device || ifindex == device_ifindex)
		rxe_begin();
	return 0;
}

SEC("raw_tp/rxe_rx_end")
int BPF_PROG(rxe_rx_end, __u32 ifindex)
{
	if (!one_device || ifindex == device_ifindex)
		rxe_end();
	return 0;
}

/* the stock driver: its functions. Its work functions are recognised by address above. */

#define DEFINE_STOCK(function)               \
	SEC("fentry/" #function)             \
	int BPF_PROG(stock_##function)       \
	{                                    \
		rxe_begin();                 \
		return 0;                    \
	}                                    \
	SEC("fexit/" #function)              \
	int BPF_PROG(stock_##function##_ret) \
	{                                    \
		rxe_end();                   \
		return 0;                    \
	}
DEFINE_STOCK(rxe_do_task)
DEFINE_STOCK(rxe_udp_encap_recv)
DEFINE_STOCK(rxe_rcv)

/* Run by the reader on each CPU (BPF_PROG_TEST_RUN); the argument is a sample_action. */
SEC("raw_tp")
int sample(struct bpf_raw_tracepoint_args *ctx)
{
	struct cpu_state *cpu = this_cpu();
	__u64 action = ctx->args[0];

	if (!cpu)
		return 0;
	if (action == SAMPLE_BEGIN) {
		cpu->task = state_of((struct task_struct *)bpf_get_current_task_btf());
		cpu->last = bpf_ktime_get_ns();
		*(volatile __u64 *)&cpu->start = cpu->last;
		return 0;
	}
	if (action == SAMPLE_FREEZE)
		*(volatile __u8 *)&cpu->frozen = 1;
	take_time(cpu);
	cpu->end = cpu->last;
	__builtin_memcpy(cpu->sample, cpu->ns, sizeof(cpu->sample));
	return 0;
}

/* Calibration, by BPF_PROG_TEST_RUN before anything is attached. */

SEC("socket")
int calibrate_empty(struct __sk_buff *ctx)
{
	return 0;
}

SEC("socket")
int calibrate_event(struct __sk_buff *ctx)
{
	struct cpu_state *cpu = this_cpu();

	take_time(cpu);
	return 0;
}

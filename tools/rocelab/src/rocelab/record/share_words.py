# SPDX-License-Identifier: GPL-2.0-or-later
"""The words that a shared report may contain (`rocelab.record.share`).

They are those of rocelab's metrics, and what kernels, drivers, processors and distributions call
their versions and settings. None names a person, a machine or a place. A word that is not here is
masked, which costs a shared report a word: add it only if it can name none of these.
"""

from __future__ import annotations

from rocelab import stage_table
from rocelab.plans.catalog import TESTS, TRANSPORTS

_WORDS = """
ab abort aborted accelerator access ack acked acknowledge acknowledged acquired active adapter
adaptive aer affected after again all allgather alloc allreduce alltoall altra amd ampere and
answer answers any application arm arrived asym at atom atomic atypical auto automatic autoneg
avx aws azure bad balanced bandwidth barrier barriers base basek baser bb bbr bcast before
benchmark best between bhi bi bibw bidirectional bin bind bit bits bnxt bond bookworm boost boot
both bpf bpo bridge bt bth budget buffer bugs build bullseye busy but bw by bytes cache
cacheline calibration canceled card carrier cascade ce cg challenged channels check checks
checksum checksumming chunk clang cleared client clients clock cloud cluster cma cnp coal
coalescing code codel collective collisions combined command communication compare complete
completed completer completion compressed config congested congestion connection connections
conservative control cooper copper copy core cores corrupt cortex cost count counter coverage
cpu cqe cqes crc crypto csum csums cubic curl cxgb cycles cyclictest data datagram deb debian
debug decapsulation default deferred delay delayed demo deny depth derived dev device devices
dfsg dhcp dirty disabled disk dkms dma done double down downed dpkg driver drivers drop dropped
drops dscp dump dup duplex duplicate dvfs dynamic ecn edge edr eec efa eibrs either el emulator
ena enabled encapsulation end ended ends enforce enhanced enterprise entry ep epoll epyc err
error errors esp eth ethernet ethtool event events every evictions exact exc exceeded exec
existing exit expected expired explicit extra fabric family fast faster fault faults fc fcoe fcs
fdr fec fedora feed fetch fifo file files fill filling filter filters final fio firmware first
fit fixed flap flood flow flush force forced forwarding found fq fraglist frame frames frequency
fs ft ftp full function fwd gather gathered gauge gb gbit gcp gen generic get ghostwrite gid gke
gold gp gre gro group gso gt guest half hardened hardirq hash hashing haswell hdr header
heartbeat hfi high highdma higher hns hold hop host hosts hpcc hsr hw hwe hwp hwts hwtstamp
hyper hypervisor hz ib ibm ibpb ibrs ibv ibverbs ice icelake icount icrc id idle idt igb image
imb imm immediate inet infiniband info initrd inline ins insert instances instructions
instrumented intel interconnect interface internet interrupt interrupted interrupts inv
invalidate invariant iommu ionic ip iperf ipoib iproute ipsec ipv ipxip irdma irq irqs is itlb
iwarp ixgbe join jumbo kb kernel kib killed kmod ko ksmbd kthread kvm lake lanes large lat late
latency layer lcb leaf least length less lib libibverbs library life limit line lines link linux
list ll lld loc local lock lockless lockstep log loopback lossless lost low lower lowlatency lpc
lro lsm lts lu machine macsec managed mangleid marginal marks mask masked matched max mb mbit
mds mean means meltdown mem memory menu message messages meters mg mib micro middle min mini
mirror missed mitigation mitigations mlnx mlx mmap mmio mode model modified module modules more
most moved mpi mpibench mq ms msg msi mt mtu multi multicast multiport mw myri nak naks native
needed neoverse net netdev netem netns netvsc network never nfs nfsd ng nic nice no nocache node
nodes nohandler none noqueue not notification np npb npt ns ntuple null numa number nvme nx
octeon octets oem of ofed off offload offloads often ok old omb on one only op opcode opcodes
open opensuse optional oracle order original osu other others out outside outstanding over own
owner packages packed packet packets page pages pair paranoid paravirt parity parse partial
particular pass passed path pause payload pbrsb pci pcie pclmul per perf performance perftest
permille pfc pfifo phys pingpong pinned pipe pkt pkts place platinum plus point pointer policy
poll polled port power powerpc powersave pp ppc preempt premium prio priorities priority probe
processor processors profile proof property prot protocol proven provider providers psn pstate
ptr push put qdisc qdr qemu qp qperf qps queue quick quota ram randread randwrite rank ranks
rate raw rc rcopy rcu rcv rcvd rdma rdmacm reached reaction read reads ready real reason receive
received receiver record records recovered recovery recvs red redirect reduce reg register relay
release reliable rem remcsum rename reordered repeat repetition replay reply report req request
requests reserved reset residual resources resp response responses restart restored results
retbleed retpolines retransmission retransmit retransmitted retries retry return rev rhel ring
rings risc rm rmem rnr robust roce rocelab room route rp rpm rq rs rsb rsvd rt rtt running rx
rxe rxfh rxq same samples sampling sandybridge sanitization sapphire save sbin sbitmap scale
scaling scatter schedule scheduler scheduling schedutil sctp sdr sec segmentation send sender
sendfile sends sent seq sequence server servers service setting settings sfc sfence shaping
share shared silver single siw size sizes skampi skylake slab sleep sles slow smap smart smc
smep smp smt snap snd so socket sockets soft softirq software solarflare source sp spaced span
spec spectre speculation speculative speed split spr spread sq srbds srcversion srso ssb ssbd st
stack stag stage stages start state stats status stdev step steps stibp stock stop stopped
storage store stream streams stuffing sum suse sve sw swapgs switch switched switches switching
syscall sysctl sysctls system table tables tag tail tasklet tc tcg tcp tcpdump test tests than
the thread threadripper threads through thunderx tick tight time timeout timer times timestamp
tls tnl to total tries trixie trust tsa tso tstamp tsx tun tuned tunnel turbo turin turned twice
two tx txq typical ubuntu uc ud udp uek ufo ultra unconfirmed undecoded under unexplained
unicast unit unix unknown unreliable untouched up update updates us usage use usecs used user
usercopy userspace usr utilization utils valid value values variant vcpus vendor verbs verified
version veth vf vhost via virtio virtual vlan vm vmlinuz vmware vmxnet vport vsftpd vulnerable
vxlan wait wake wall wan warm was watch watched watching way wc weak weight were wide width wifi
window wire with without witness wmem words work worker workqueue wqe wraparound write wrong xdp
xdr xen xeon xfer xgbe xmit xor xrc yes zen zero zstd
"""
_OWN = " ".join(
    (
        *(f"{tool} {test}" for tool, test in TESTS),
        *TRANSPORTS,
        *stage_table.TX,
        *stage_table.RX,
    )
)
WORDS = frozenset(_WORDS.split()) | frozenset(_OWN.replace("_", " ").replace("-", " ").split())
"""In lower case, without digits."""

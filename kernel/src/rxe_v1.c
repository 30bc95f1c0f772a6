// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * RoCE v1, where it differs from RoCE v2. From the BTH on, both are the same.
 */
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <rdma/ib_hdrs.h>

#include "rxe.h"
#include "rxe_drop.h"
#include "rxe_stage.h"
#include "rxe_v1.h"

static bool roce_v1;
module_param(roce_v1, bool, 0644);
MODULE_PARM_DESC(roce_v1, "Give devices added from now on RoCE v1 GIDs in addition to RoCE v2 GIDs (default: off)");

/*
 * sending
 */

/* both addresses whole, IPv4-mapped or not: the GRH takes 16 bytes */
void rxe_v1_fill_av(struct rxe_av *av, const struct rdma_ah_attr *attr)
{
	memcpy(&av->sgid_addr._sockaddr_in6.sin6_addr,
	       &attr->grh.sgid_attr->gid, sizeof(union ib_gid));
	memcpy(&av->dgid_addr._sockaddr_in6.sin6_addr,
	       &rdma_ah_read_grh(attr)->dgid, sizeof(union ib_gid));
	av->network_type = RXE_NETWORK_TYPE_ROCE_V1;
}

static void rxe_v1_put_dev(struct sk_buff *skb)
{
	dev_put(skb->dev);
}

/*
 * No route holds the network device until it has the packet, so the skb does.
 * The caller holds the RCU lock under which it found skb->dev.
 */
void rxe_v1_init_skb(struct sk_buff *skb)
{
	skb->protocol = htons(ETH_P_IBOE);
	dev_hold(skb->dev);
	skb->destructor = rxe_v1_put_dev;
}

/*
 * Build the headers; afterwards skb->data is the GRH, as in a received frame.
 * The caller has decided whether the packet loops back. Do not derive it again
 * from av or from skb->protocol, which a VLAN device can have rewritten.
 */
int rxe_v1_prepare(const struct rxe_av *av, struct rxe_pkt_info *pkt,
		   struct sk_buff *skb)
{
	struct net_device *dev = skb->dev;
	struct ib_grh *grh;
	int err;

	pkt->mask |= RXE_ROCE_V1_MASK;

	grh = __skb_push(skb, sizeof(*grh));
	skb_reset_network_header(skb);
	grh->version_tclass_flow =
		cpu_to_be32(IB_GRH_VERSION << IB_GRH_VERSION_SHIFT |
			    av->grh.traffic_class << IB_GRH_TCLASS_SHIFT |
			    (av->grh.flow_label & IB_GRH_FLOW_MASK));
	grh->paylen = htons(skb->len - sizeof(*grh));
	grh->next_hdr = IB_GRH_NEXT_HDR;
	grh->hop_limit = av->grh.hop_limit;
	memcpy(&grh->sgid, &av->sgid_addr._sockaddr_in6.sin6_addr,
	       sizeof(grh->sgid));
	memcpy(&grh->dgid, &av->dgid_addr._sockaddr_in6.sin6_addr,
	       sizeof(grh->dgid));

	if (pkt->mask & RXE_LOOPBACK_MASK)
		return 0;

	err = dev_hard_header(skb, dev, ETH_P_IBOE, av->dmac, NULL, skb->len);
	if (err < 0)
		return err;
	skb_reset_mac_header(skb);
	__skb_pull(skb, skb_network_offset(skb));
	return 0;
}

/* group members on the sending port get a copy, as over IP */
static void rxe_v1_loop_multicast(struct rxe_dev *rxe, struct sk_buff *skb)
{
	struct ib_grh *grh = (struct ib_grh *)skb_network_header(skb);
	struct rxe_mcg *mcg = rxe_lookup_mcg(rxe, &grh->dgid);
	struct sk_buff *copy;

	if (!mcg)
		return;
	kref_put(&mcg->ref_cnt, rxe_cleanup_mcg);

	copy = skb_clone(skb, GFP_ATOMIC);
	if (!copy)
		return;
	copy->protocol = htons(ETH_P_IBOE);
	copy->pkt_type = PACKET_LOOPBACK;
	netif_rx(copy);
}

/* consumes the skb, even on failure */
int rxe_v1_send(struct rxe_dev *rxe, struct sk_buff *skb)
{
	struct net_device *dev = skb->dev;
	int err;

	/* a packet without a link header was meant for rxe_v1_loopback() */
	if (WARN_ON_ONCE(!skb_mac_header_was_set(skb))) {
		kfree_skb(skb);
		dev_put(dev);
		return -EINVAL;
	}

	if (is_multicast_ether_addr(eth_hdr(skb)->h_dest))
		rxe_v1_loop_multicast(rxe, skb);

	__skb_push(skb, -skb_mac_offset(skb));
	err = dev_queue_xmit(skb);
	dev_put(dev);
	return net_xmit_eval(err);
}

/* the headers as rxe_v1_rcv() leaves them */
void rxe_v1_loopback(struct sk_buff *skb)
{
	/* still set if no QP has taken ownership of the skb */
	if (skb->destructor == rxe_v1_put_dev)
		skb->destructor = NULL;
	dev_put(skb->dev);
	skb_pull(skb, sizeof(struct ib_grh));
}

/* the GRH as the ICRC covers it: fields that routers may change are masked */
void rxe_v1_icrc_grh(const struct sk_buff *skb, void *masked)
{
	struct ib_grh *grh = masked;

	memcpy(grh, skb_network_header(skb), sizeof(*grh));
	grh->version_tclass_flow |=
		cpu_to_be32(BIT(IB_GRH_VERSION_SHIFT) - 1);
	grh->hop_limit = 0xff;
}

/*
 * receiving
 */

static enum rxe_drop_reason rxe_v1_check(struct sk_buff *skb)
{
	const struct ib_grh *grh;
	unsigned int version;
	unsigned int len;

	if (unlikely(skb->len < sizeof(*grh) + RXE_BTH_BYTES + RXE_ICRC_SIZE))
		return RXE_DROP_SHORT;
	if (unlikely(skb_linearize(skb)))
		return RXE_DROP_NO_MEMORY;

	grh = (const struct ib_grh *)skb->data;
	version = be32_to_cpu(grh->version_tclass_flow) >> IB_GRH_VERSION_SHIFT;
	if (unlikely(version != IB_GRH_VERSION ||
		     grh->next_hdr != IB_GRH_NEXT_HDR))
		return RXE_DROP_GRH;

	len = sizeof(*grh) + ntohs(grh->paylen);
	if (unlikely(len < sizeof(*grh) + RXE_BTH_BYTES + RXE_ICRC_SIZE ||
		     len > skb->len))
		return RXE_DROP_LENGTH;

	/* a small frame is padded to Ethernet's minimum */
	if (unlikely(pskb_trim_rcsum(skb, len)))
		return RXE_DROP_NO_MEMORY;
	return RXE_DROP_NONE;
}

/* takes a reference on the device, as rxe_get_dev_from_net() does */
static struct rxe_dev *rxe_v1_get_dev(struct net_device *dev)
{
	struct rxe_dev *rxe = rxe_get_dev_from_net(dev);

	if (!rxe && is_vlan_dev(dev))
		rxe = rxe_get_dev_from_net(vlan_dev_real_dev(dev));
	if (rxe && !rxe->roce_v1) {
		ib_device_put(&rxe->ib_dev);
		rxe = NULL;
	}
	return rxe;
}

/* hears every interface of every network namespace */
static int rxe_v1_rcv(struct sk_buff *skb, struct net_device *dev,
		      struct packet_type *pt, struct net_device *orig_dev)
{
	enum rxe_drop_reason reason;
	struct rxe_pkt_info *pkt;
	struct rxe_dev *rxe;

	skb = skb_share_check(skb, GFP_ATOMIC);
	if (unlikely(!skb))
		return NET_RX_DROP;

	trace_rxe_rx_begin(dev->ifindex);
	pkt = SKB_TO_PKT(skb);
	pkt->mask = RXE_GRH_MASK | RXE_ROCE_V1_MASK;
	rxe_stamp_rx_arrival(skb);

	/* the sender may be a QP of this host, on the other end of a veth */
	skb_orphan(skb);

	/* takes a reference on rxe->ib_dev
	 * drop when skb is freed
	 */
	rxe = rxe_v1_get_dev(dev);
	reason = RXE_DROP_NO_DEVICE;
	if (unlikely(!rxe))
		goto drop;

	reason = RXE_DROP_NETNS;
	if (unlikely(!rdma_dev_access_netns(&rxe->ib_dev, dev_net(dev))))
		goto drop;

	reason = RXE_DROP_OTHERHOST;
	if (unlikely(skb->pkt_type == PACKET_OTHERHOST))
		goto drop;

	reason = rxe_v1_check(skb);
	if (unlikely(reason))
		goto drop;

	pkt->rxe = rxe;
	pkt->port_num = 1;
	pkt->vlan_id = rxe_vlan_id(dev);
	pkt->hdr = skb_pull(skb, sizeof(struct ib_grh));
	pkt->paylen = skb->len;

	rxe_rcv(skb);
	trace_rxe_rx_end(dev->ifindex);
	return NET_RX_SUCCESS;

drop:
	trace_rxe_drop(skb, rxe ? rxe->ib_dev.index : RXE_DEV_NONE, 0, 0,
		       RXE_OPCODE_NONE, reason);
	rxe_free_skb(skb, reason);
	if (rxe) {
		rxe_counter_inc(rxe, RXE_CNT_RCVD_DROPS);
		ib_device_put(&rxe->ib_dev);
	}
	trace_rxe_rx_end(dev->ifindex);
	return NET_RX_DROP;
}

static struct packet_type rxe_v1_packet_type __read_mostly = {
	.type = cpu_to_be16(ETH_P_IBOE),
	.func = rxe_v1_rcv,
};

/*
 * The handler is registered only while a device uses RoCE v1. Otherwise the
 * network stack counts these frames as unhandled, as without this driver.
 */
static DEFINE_MUTEX(rxe_v1_lock);
static unsigned int rxe_v1_devices;
DEFINE_STATIC_KEY_FALSE(rxe_v1_on);

void rxe_v1_add(struct rxe_dev *rxe, const struct net_device *ndev)
{
	if (!READ_ONCE(roce_v1))
		return;

	/* RoCE v1 frames are Ethernet frames */
	if (ndev->type != ARPHRD_ETHER) {
		netdev_warn(ndev, "no Ethernet device: RoCE v2 only\n");
		return;
	}
	rxe->roce_v1 = true;

	mutex_lock(&rxe_v1_lock);
	if (!rxe_v1_devices++) {
		static_branch_enable(&rxe_v1_on);
		dev_add_pack(&rxe_v1_packet_type);
	}
	mutex_unlock(&rxe_v1_lock);
}

void rxe_v1_del(struct rxe_dev *rxe)
{
	if (!rxe->roce_v1)
		return;

	mutex_lock(&rxe_v1_lock);
	/* packets hold a reference on their device: there are none any more */
	if (!--rxe_v1_devices) {
		dev_remove_pack(&rxe_v1_packet_type);
		static_branch_disable(&rxe_v1_on);
	}
	mutex_unlock(&rxe_v1_lock);
}

/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * RoCE v1: a GRH in an Ethernet frame, without IP and UDP. A device that was
 * added while the module parameter roce_v1 was set has GIDs of both types, and
 * a packet takes the encapsulation of its source GID.
 */
#ifndef RXE_V1_H
#define RXE_V1_H

#include <linux/if_ether.h>
#include <linux/jump_label.h>
#include <linux/skbuff.h>

/* continues the types of rdma_user_rxe.h; user space does not need it */
#define RXE_NETWORK_TYPE_ROCE_V1	3

/* on while a device has GIDs of RoCE v1: otherwise each check is a patched-out branch */
DECLARE_STATIC_KEY_FALSE(rxe_v1_on);
#define rxe_v1_enabled()	static_branch_unlikely(&rxe_v1_on)

static __always_inline bool rxe_v1_av(const struct rxe_av *av)
{
	return rxe_v1_enabled() && av->network_type == RXE_NETWORK_TYPE_ROCE_V1;
}

static __always_inline bool rxe_v1_pkt(const struct rxe_pkt_info *pkt)
{
	return rxe_v1_enabled() && pkt->mask & RXE_ROCE_V1_MASK;
}

/* a packet comes in another encapsulation than the connection's */
static __always_inline bool rxe_v1_differs(const struct rxe_pkt_info *pkt,
					   const struct rxe_av *av)
{
	return rxe_v1_enabled() && rxe_v1_pkt(pkt) != rxe_v1_av(av);
}

/*
 * A user may set the type of his address vector to v1 while the branches are
 * switched on: a packet is v1 only if both it and the GID are.
 */
static __always_inline bool rxe_v1_chosen(const struct rxe_av *av,
					  const struct ib_gid_attr *attr)
{
	return rxe_v1_enabled() && attr->gid_type == IB_GID_TYPE_ROCE &&
	       av->network_type == RXE_NETWORK_TYPE_ROCE_V1;
}

static __always_inline bool rxe_v1_refused(const struct rxe_av *av,
					   const struct ib_gid_attr *attr)
{
	return rxe_v1_enabled() && (attr->gid_type == IB_GID_TYPE_ROCE) !=
		(av->network_type == RXE_NETWORK_TYPE_ROCE_V1);
}

void rxe_v1_add(struct rxe_dev *rxe, const struct net_device *ndev);
void rxe_v1_del(struct rxe_dev *rxe);

void rxe_v1_fill_av(struct rxe_av *av, const struct rdma_ah_attr *attr);
void rxe_v1_init_skb(struct sk_buff *skb);
int rxe_v1_prepare(const struct rxe_av *av, struct rxe_pkt_info *pkt,
		   struct sk_buff *skb);
int rxe_v1_send(struct rxe_dev *rxe, struct sk_buff *skb);
void rxe_v1_loopback(struct sk_buff *skb);
void rxe_v1_icrc_grh(const struct sk_buff *skb, void *masked);

#endif /* RXE_V1_H */

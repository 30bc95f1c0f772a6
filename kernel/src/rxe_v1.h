/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * RoCE v1: a GRH in an Ethernet frame, without IP and UDP. A device that was
 * added while the module parameter roce_v1 was set has GIDs of both types, and
 * a packet takes the encapsulation of its source GID.
 */
#ifndef RXE_V1_H
#define RXE_V1_H

#include <linux/if_ether.h>
#include <linux/skbuff.h>

/* continues the types of rdma_user_rxe.h; user space does not need it */
#define RXE_NETWORK_TYPE_ROCE_V1	3

static inline bool rxe_v1_av(const struct rxe_av *av)
{
	return av->network_type == RXE_NETWORK_TYPE_ROCE_V1;
}

static inline bool rxe_v1_pkt(const struct rxe_pkt_info *pkt)
{
	return pkt->mask & RXE_ROCE_V1_MASK;
}

static inline bool rxe_v1_gid(const struct ib_gid_attr *attr)
{
	return attr->gid_type == IB_GID_TYPE_ROCE;
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

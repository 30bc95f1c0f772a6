/* SPDX-License-Identifier: GPL-2.0-only */
/* Queue pairs together, by what they have in common: a row for each group. */
#ifndef QP_GROUP_H
#define QP_GROUP_H

#include "top_columns.h"

struct qp_groups {
	struct qp_row *at; /* by the first of their queue pairs */
	size_t n;
};

/*
 * The groups of the queue pairs that are selected, idle or not; selection.group says by what.
 * False: out of memory, and there are none. Free them after use.
 */
bool qp_groups_make(struct qp_groups *groups, const struct qp_list *list,
		    const struct selection *selection);
void qp_groups_free(struct qp_groups *groups);

/*
 * What is shown: the selected queue pairs, or the groups of them, made in the empty *groups. The
 * caller frees the array, then the groups.
 */
const struct qp_row **rows_shown(struct qp_groups *groups, const struct qp_list *list,
				 const struct selection *selection, size_t *n);

#endif /* QP_GROUP_H */

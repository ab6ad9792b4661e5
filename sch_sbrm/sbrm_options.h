/* SPDX-License-Identifier: GPL-2.0 */
/* The options of sch_sbrm, see pkt_sbrm.h. */
#ifndef _SBRM_OPTIONS_H
#define _SBRM_OPTIONS_H

#include <linux/types.h>

struct netlink_ext_ack;
struct nlattr;
struct sbrm_params;
struct sk_buff;

void sbrm_params_init(struct sbrm_params *params, const struct nlattr *opt);
int sbrm_params_parse(struct sbrm_params *params, struct nlattr *opt,
		      bool *reset_stats, struct netlink_ext_ack *extack);
int sbrm_params_dump(struct sk_buff *skb, const struct sbrm_params *params);

#endif /* _SBRM_OPTIONS_H */

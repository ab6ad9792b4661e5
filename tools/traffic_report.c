// SPDX-License-Identifier: GPL-2.0
/* The sender: its report. */
#include "traffic_send.h"

static int64_t since_epoch(const struct sender *sender, int64_t at_ns)
{
	return at_ns == TIME_UNSET ? TIME_UNSET : at_ns - sender->epoch_ns;
}

#define REPORT_COLUMN(to, from, name) do {				\
	const struct flow *column_of = (from);				\
									\
	JSON_COLUMN(to, #name, column_of->samples,			\
		    column_of->sample_count, name);			\
} while (0)

static void report_samples(struct json *json, const struct sender *sender,
			   const struct flow *flow)
{
	size_t i;

	json_begin(json, "samples", '{');
	json_begin(json, "t_s", '[');
	for (i = 0; i < flow->sample_count; i++)
		json_seconds(json, NULL,
			     since_epoch(sender, flow->samples[i].t_ns));
	json_end(json, ']');
	REPORT_COLUMN(json, flow, bytes_acked);
	REPORT_COLUMN(json, flow, cwnd);
	REPORT_COLUMN(json, flow, ssthresh);
	REPORT_COLUMN(json, flow, srtt_us);
	REPORT_COLUMN(json, flow, min_rtt_us);
	REPORT_COLUMN(json, flow, retransmits);
	REPORT_COLUMN(json, flow, unacked);
	REPORT_COLUMN(json, flow, pacing_bps);
	REPORT_COLUMN(json, flow, delivered);
	REPORT_COLUMN(json, flow, delivered_ce);
	REPORT_COLUMN(json, flow, ca_state);
	if (sender->options->cc_info) {
		REPORT_COLUMN(json, flow, cc_rate_bps);
		REPORT_COLUMN(json, flow, cc_min_rtt_us);
		REPORT_COLUMN(json, flow, cc_pacing_gain);
		REPORT_COLUMN(json, flow, cc_cwnd_gain);
	}
	json_end(json, '}');
}

#define REPORT_FRAMES(to, from, name) do {				\
	const struct flow *column_of = (from);				\
									\
	JSON_COLUMN(to, #name, column_of->frames, column_of->frame_count,\
		    name);						\
} while (0)

static void report_frames(struct json *json, const struct sender *sender,
			  const struct flow *flow)
{
	size_t i;

	json_begin(json, "frames", '{');
	json_begin(json, "t_s", '[');
	for (i = 0; i < flow->frame_count; i++)
		json_seconds(json, NULL,
			     since_epoch(sender, flow->frames[i].t_ns));
	json_end(json, ']');
	REPORT_FRAMES(json, flow, bytes);
	REPORT_FRAMES(json, flow, allowed_bps);
	if (flow->config->paired)
		REPORT_FRAMES(json, flow, packets);
	json_end(json, '}');
}

#define REPORT_PAGES(to, from, name) do {				\
	const struct flow *column_of = (from);				\
									\
	JSON_COLUMN(to, #name, column_of->pages, column_of->page_count,\
		    name);						\
} while (0)

static void report_pages(struct json *json, const struct sender *sender,
			 const struct flow *flow)
{
	size_t i;

	json_begin(json, "pages", '{');
	json_begin(json, "start_s", '[');
	for (i = 0; i < flow->page_count; i++)
		json_seconds(json, NULL,
			     since_epoch(sender, flow->pages[i].start_ns));
	json_end(json, ']');
	json_begin(json, "duration_s", '[');
	for (i = 0; i < flow->page_count; i++)
		json_seconds(json, NULL, flow->pages[i].duration_ns);
	json_end(json, ']');
	REPORT_PAGES(json, flow, bytes);
	REPORT_PAGES(json, flow, objects);
	json_end(json, '}');
}

static void report_transfers(struct json *json, const struct sender *sender,
			     const struct flow *flow)
{
	size_t i;

	json_begin(json, "transfers", '[');
	for (i = 0; i < flow->transfer_count; i++) {
		const struct transfer *transfer = &flow->transfers[i];

		json_begin(json, NULL, '{');
		json_seconds(json, "start_s",
			     since_epoch(sender, transfer->start_ns));
		json_seconds(json, "end_s",
			     since_epoch(sender, transfer->end_ns));
		json_integer(json, "bytes", transfer->bytes);
		json_end(json, '}');
	}
	json_end(json, ']');
}

static void report_tcp(struct json *json, const struct sender *sender,
		       const struct flow *flow)
{
	const struct totals *sum = &flow->earlier;

	json_integer(json, "bytes_acked", sum->bytes_acked);
	json_integer(json, "bytes_sent", sum->bytes_sent);
	json_integer(json, "segs_out", sum->segs_out);
	json_integer(json, "retransmits", sum->retransmits);
	json_integer(json, "lost", flow->lost);
	json_integer(json, "delivered", sum->delivered);
	json_integer(json, "delivered_ce", sum->delivered_ce);
	json_integer(json, "busy_us", sum->busy_us);
	json_integer(json, "rwnd_limited_us", sum->rwnd_limited_us);
	json_integer(json, "sndbuf_limited_us", sum->sndbuf_limited_us);
	if (flow->config->http)
		report_pages(json, sender, flow);
	else
		report_transfers(json, sender, flow);
	if (flow->config->floor_bps)
		report_frames(json, sender, flow);
	report_samples(json, sender, flow);
}

/* The mean rate of a modulated process in each whole period of sampling. */
static void report_modulated(struct json *json, const struct sender *sender,
			     const struct flow *flow)
{
	int64_t period_ns = sender->options->sample_ns;
	int64_t end_ns = flow->stopped_ns;
	size_t count = 0, i;

	/* A slow machine stops a flow later than its stop time. */
	if (end_ns > flow->stop_ns)
		end_ns = flow->stop_ns;
	if (period_ns && end_ns > sender->epoch_ns)
		count = (end_ns - sender->epoch_ns) / period_ns;
	if (count > flow->offered_room)
		count = flow->offered_room;
	json_begin(json, "mmpp", '{');
	json_integer(json, "changes", flow->place.changes);
	json_begin(json, "t_s", '[');
	for (i = 0; i < count; i++)
		json_seconds(json, NULL, (int64_t)i * period_ns);
	json_end(json, ']');
	json_begin(json, "rate_bps", '[');
	for (i = 0; i < count; i++)
		json_integer(json, NULL,
			     (int64_t)(flow->offered[i] / period_ns));
	json_end(json, ']');
	json_end(json, '}');
}

/* A flow with law= that did not begin has no report. */
static void report_paired(struct json *json, const struct sender *sender,
			  const struct flow *flow)
{
	static const struct pairs none;
	const struct pairs *pairs = flow->pairs ? flow->pairs : &none;

	json_begin(json, "law", '{');
	json_integer(json, "reports", pairs->reports);
	json_integer(json, "cut", pairs->cut);
	json_integer(json, "truncated", pairs->truncated);
	json_integer(json, "foreign", pairs->foreign);
	json_integer(json, "absurd", pairs->absurd);
	json_integer(json, "repeated", pairs->repeated);
	json_integer(json, "halved", pairs->halved);
	json_boolean(json, "unsegmented", pairs->unsegmented);
	json_integer(json, "received", pairs->received);
	json_integer(json, "lost", pairs->lost);
	json_integer(json, "rate_kbps", pairs->rate_kbps);
	json_integer(json, "srtt_us", pairs->srtt_us);
	json_integer(json, "min_rtt_us", pairs->least_us);
	json_end(json, '}');
	if (flow->config->frame_bytes)
		report_frames(json, sender, flow);
}

static void report_flow(struct json *json, const struct sender *sender,
			const struct flow *flow)
{
	const struct flow_config *config = flow->config;

	json_begin(json, NULL, '{');
	json_integer(json, "id", config->id);
	json_string(json, "proto", config->udp ? "udp" : "tcp");
	json_string(json, "cc", *flow->cc ? flow->cc : NULL);
	if (config->prio >= 0)
		json_integer(json, "prio", config->prio);
	else
		json_null(json, "prio");
	json_string(json, "dst", config->dst_text);
	json_integer(json, "port", address_port(&config->dst));
	if (flow->local_port)
		json_integer(json, "local_port", flow->local_port);
	else
		json_null(json, "local_port");
	json_seconds(json, "start_s", config->start_ns);
	json_seconds(json, "connected_s",
		     since_epoch(sender, flow->connected_ns));
	json_seconds(json, "stop_s", since_epoch(sender, flow->stopped_ns));
	if (config->udp) {
		json_integer(json, "packets", flow->packets);
		json_integer(json, "bytes", flow->packets *
			     config->size_bytes);
		json_integer(json, "refused", flow->refused);
		if (config->modulated)
			report_modulated(json, sender, flow);
		if (config->paired)
			report_paired(json, sender, flow);
	} else {
		report_tcp(json, sender, flow);
	}
	json_string(json, "error", flow->error);
	json_end(json, '}');
}

/* Counters of the network namespace since the run began. */
static void report_network(struct json *json, const struct network *before)
{
	struct network now;
	int i;

	network_read(&now);
	if (!now.known || !before->known) {
		json_null(json, "network");
		return;
	}
	json_begin(json, "network", '{');
	for (i = 0; i < NETWORK_COUNTERS; i++)
		json_integer(json, network_names[i],
			     now.counters[i] - before->counters[i]);
	json_end(json, '}');
}

bool report_send(struct json *json, const struct sender *sender)
{
	size_t i;

	json_begin(json, NULL, '{');
	json_integer(json, "schema", 1);
	json_string(json, "role", "send");
	json_integer(json, "epoch_ns", sender->epoch_ns);
	json_boolean(json, "interrupted", sender->interrupted);
	json_integer(json, "unsent_bytes", sender->unsent_bytes);
	report_network(json, &sender->before);
	json_begin(json, "flows", '[');
	for (i = 0; i < sender->file.count; i++)
		report_flow(json, sender, &sender->flows[i]);
	json_end(json, ']');
	json_end(json, '}');
	return json_commit(json);
}

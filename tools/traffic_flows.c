// SPDX-License-Identifier: GPL-2.0
/*
 * The flow file: one flow a line, key=value words, # begins a comment.
 * Every error message names the line and ends the program before anything runs.
 */
#include <netinet/ip.h>

#include "traffic.h"
#include "traffic_wire.h"

#define FLOW_ID_MAX		INT32_MAX
#define UDP_SIZE_DEFAULT	972	/* 1000 bytes with UDP and IPv4 headers */
#define UDP_SIZE_MIN		16	/* our sequence header */
#define UDP_SIZE_MAX		65507
#define PAIR_SIZE_MAX		(UDP_SIZE_MAX / 2)	/* two in one */
#define FRAME_MAX		1000000000
#define FRAME_EVERY_MIN_NS	(NSEC_PER_SEC / 10000)
#define FRAME_EVERY_MAX_NS	(3600 * NSEC_PER_SEC)
#define SETPOINT_DEFAULT	20	/* PP94 9.1 */
#define TOLD_MAX		32
#define MMPP_STATES		333	/* AACC Figure 8 */
/* The HTTP model of CP05 5.6.4. */
#define HTTP_OBJECTS		6550000	/* millionths */
#define HTTP_MEAN_BYTES		10000
#define HTTP_MIN_BYTES		100
#define HTTP_MAX_BYTES		10000000
#define HTTP_OFF_NS		(500 * NSEC_PER_MSEC)

#define bad_line(file, number, ...) do {				\
	fprintf(stderr, "%s: %s:%u: ", program_invocation_short_name,	\
		(file)->name, number);					\
	fprintf(stderr, __VA_ARGS__);					\
	fputc('\n', stderr);						\
	exit(STATUS_USAGE);						\
} while (0)

enum flow_key {
	KEY_ID, KEY_DST, KEY_PORT, KEY_PROTO, KEY_CC, KEY_PRIO, KEY_MARK,
	KEY_START, KEY_STOP, KEY_BYTES, KEY_ON, KEY_OFF, KEY_REPEAT,
	KEY_PAGES, KEY_OBJECTS, KEY_OBJECT_MEAN, KEY_OBJECT_MIN, KEY_OBJECT_MAX,
	KEY_CONNECTIONS, KEY_RATE, KEY_ARRIVAL, KEY_STATES, KEY_HOLD, KEY_LOW,
	KEY_SIZE, KEY_OVERHEAD,
	KEY_UNSENT, KEY_SEED, KEY_CONNECT, KEY_SOURCE, KEY_FLOOR, KEY_ECN,
	KEY_LAW, KEY_SETPOINT, KEY_REPORT, KEY_FRAME, KEY_EVERY, KEY_TOLD,
	KEY_COUNT
};

static const char * const key_names[KEY_COUNT] = {
	[KEY_ID] = "id",
	[KEY_DST] = "dst",
	[KEY_PORT] = "port",
	[KEY_PROTO] = "proto",
	[KEY_CC] = "cc",
	[KEY_PRIO] = "prio",
	[KEY_MARK] = "mark",
	[KEY_START] = "start",
	[KEY_STOP] = "stop",
	[KEY_BYTES] = "bytes",
	[KEY_ON] = "on",
	[KEY_OFF] = "off",
	[KEY_REPEAT] = "repeat",
	[KEY_PAGES] = "pages",
	[KEY_OBJECTS] = "objects",
	[KEY_OBJECT_MEAN] = "object-mean",
	[KEY_OBJECT_MIN] = "object-min",
	[KEY_OBJECT_MAX] = "object-max",
	[KEY_CONNECTIONS] = "connections",
	[KEY_RATE] = "rate",
	[KEY_ARRIVAL] = "arrival",
	[KEY_STATES] = "states",
	[KEY_HOLD] = "hold",
	[KEY_LOW] = "low",
	[KEY_SIZE] = "size",
	[KEY_OVERHEAD] = "overhead",
	[KEY_UNSENT] = "unsent",
	[KEY_SEED] = "seed",
	[KEY_CONNECT] = "connect",
	[KEY_SOURCE] = "source",
	[KEY_FLOOR] = "floor",
	[KEY_ECN] = "ecn",
	[KEY_LAW] = "law",
	[KEY_SETPOINT] = "setpoint",
	[KEY_REPORT] = "report-rtt",
	[KEY_FRAME] = "frame",
	[KEY_EVERY] = "every",
	[KEY_TOLD] = "told",
};

static const char *key_expects(enum flow_key key)
{
	switch (key) {
	case KEY_ID:
		return "a whole number from 1 to 2147483647";
	case KEY_DST:
		return "an IPv4 or IPv6 address";
	case KEY_PORT:
		return "a port from 1 to 65535";
	case KEY_PROTO:
		return "tcp or udp";
	case KEY_CC:
		return "a name of 1 to 15 characters";
	case KEY_PRIO:
		return "a whole number from 0 to 15";
	case KEY_MARK:
		return "a whole number from 0 to 4294967295";
	case KEY_START:
	case KEY_STOP:
		return "a number of seconds";
	case KEY_BYTES:
	case KEY_UNSENT:
		return "a number of bytes above 0";
	case KEY_ON:
	case KEY_OFF:
		return "a number of seconds or exp:MEAN";
	case KEY_REPEAT:
	case KEY_SEED:
		return "a whole number";
	case KEY_PAGES:
		return "http";
	case KEY_OBJECTS:
		return "a number from 1 to 1000";
	case KEY_OBJECT_MEAN:
	case KEY_OBJECT_MIN:
	case KEY_OBJECT_MAX:
		return "a number of bytes from 1 to 1000g";
	case KEY_CONNECTIONS:
		return "page or object";
	case KEY_RATE:
	case KEY_LOW:
	case KEY_FLOOR:
		return "a number of bits per second above 0";
	case KEY_CONNECT:
		return "start or early";
	case KEY_SOURCE:
		return "open or closed";
	case KEY_ARRIVAL:
		return "cbr, poisson or mmpp";
	case KEY_STATES:
		return "a whole number from 2 to 1000000";
	case KEY_HOLD:
		return "a number of seconds above 0";
	case KEY_SIZE:
		return "a number of bytes from 16 to 65507";
	case KEY_OVERHEAD:
		return "a number of bytes from 0 to 1000";
	case KEY_ECN:
		return "0 or 1";
	case KEY_LAW:
		return "pp";
	case KEY_SETPOINT:
		return "a whole number from 1 to 511";
	case KEY_REPORT:
		return "a multiple of 0.25 from 0.25 to 31.75";
	case KEY_FRAME:
		return "a number of bytes from 1 to 1000m";
	case KEY_EVERY:
		return "a number of seconds from 0.0001 to 3600";
	case KEY_TOLD:
		return "BITS[,BITS@SECONDS...]: at most 32 rates, with increasing times";
	case KEY_COUNT:
		break;
	}
	return "something else";
}

static bool parse_span(const char *text, struct span *span)
{
	span->exponential = !strncmp(text, "exp:", 4);
	if (span->exponential)
		text += 4;
	return parse_seconds(text, &span->ns);
}

static bool parse_choice(const char *text, const char *no, const char *yes,
			 bool *value)
{
	*value = !strcmp(text, yes);
	return *value || !strcmp(text, no);
}

static bool parse_name(const char *text, char *name)
{
	if (!*text || strlen(text) >= CONGESTION_NAME_MAX)
		return false;
	strcpy(name, text);
	return true;
}

static bool parse_object_bytes(const char *text, int64_t *bytes)
{
	return parse_quantity(text, bytes) && *bytes > 0 &&
	       *bytes <= PAGES_BYTES_MAX;
}

/* BITS[@SECONDS], a list with commas; the first rate applies from the start on. */
static bool parse_told(struct flow_config *flow, const char *text)
{
	char *copy = checked_alloc(strdup(text)), *left = copy, *word, *at;
	bool good = true;

	while (good && (word = strsep(&left, ","))) {
		struct told told = { 0 };

		at = strchr(word, '@');
		if (at)
			*at++ = '\0';
		good = flow->told_count < TOLD_MAX &&
		       !at == !flow->told_count &&
		       parse_quantity(word, &told.bps) && told.bps >= 8 &&
		       (!at || parse_seconds(at, &told.at_ns)) &&
		       (!at || told.at_ns >
			flow->told[flow->told_count - 1].at_ns);
		flow->told = checked_reallocarray(flow->told,
						  flow->told_count + 1,
						  sizeof(*flow->told));
		flow->told[flow->told_count++] = told;
	}
	free(copy);
	return good;
}

static bool parse_value(struct flow_config *flow, enum flow_key key,
			const char *text)
{
	int64_t number;

	switch (key) {
	case KEY_ID:
		if (!parse_integer(text, 1, FLOW_ID_MAX, &number))
			return false;
		flow->id = number;
		return true;
	case KEY_DST:
		if (strlen(text) >= sizeof(flow->dst_text))
			return false;
		strcpy(flow->dst_text, text);
		number = address_port(&flow->dst);
		if (!address_parse(text, &flow->dst))
			return false;
		address_set_port(&flow->dst, number);
		return true;
	case KEY_PORT:
		if (!parse_integer(text, 1, UINT16_MAX, &number))
			return false;
		address_set_port(&flow->dst, number);
		return true;
	case KEY_PROTO:
		return parse_choice(text, "tcp", "udp", &flow->udp);
	case KEY_CC:
		return parse_name(text, flow->cc);
	case KEY_PRIO:
		if (!parse_integer(text, 0, 15, &number))
			return false;
		flow->prio = number;
		return true;
	case KEY_MARK:
		return parse_integer(text, 0, UINT32_MAX, &flow->mark);
	case KEY_START:
		return parse_seconds(text, &flow->start_ns);
	case KEY_STOP:
		return parse_seconds(text, &flow->stop_ns);
	case KEY_BYTES:
		return parse_quantity(text, &flow->bytes) && flow->bytes > 0;
	case KEY_ON:
		return parse_span(text, &flow->on) && flow->on.ns > 0;
	case KEY_OFF:
		return parse_span(text, &flow->off);
	case KEY_REPEAT:
		return parse_integer(text, 0, INT32_MAX, &flow->repeat);
	case KEY_PAGES:
		flow->http = !strcmp(text, "http");
		return flow->http;
	case KEY_OBJECTS:
		return parse_decimal(text, PAGES_MILLION, false,
				     &flow->pages.objects) &&
		       flow->pages.objects >= PAGES_MILLION &&
		       flow->pages.objects <= PAGES_OBJECTS_MAX;
	case KEY_OBJECT_MEAN:
		return parse_object_bytes(text, &flow->pages.mean_bytes);
	case KEY_OBJECT_MIN:
		return parse_object_bytes(text, &flow->pages.min_bytes);
	case KEY_OBJECT_MAX:
		return parse_object_bytes(text, &flow->pages.max_bytes);
	case KEY_CONNECTIONS:
		return parse_choice(text, "page", "object", &flow->per_object);
	case KEY_RATE:
		return parse_quantity(text, &flow->rate_bps) &&
		       flow->rate_bps > 0;
	case KEY_ARRIVAL:
		flow->modulated = !strcmp(text, "mmpp");
		return flow->modulated ||
		       parse_choice(text, "cbr", "poisson", &flow->poisson);
	case KEY_STATES:
		return parse_integer(text, 2, MMPP_STATES_MAX,
				     &flow->mmpp.states);
	case KEY_HOLD:
		return parse_seconds(text, &flow->mmpp.hold_ns) &&
		       flow->mmpp.hold_ns > 0;
	case KEY_LOW:
		return parse_quantity(text, &flow->mmpp.low_bps) &&
		       flow->mmpp.low_bps > 0;
	case KEY_SIZE:
		return parse_integer(text, UDP_SIZE_MIN, UDP_SIZE_MAX,
				     &flow->size_bytes);
	case KEY_OVERHEAD:
		return parse_integer(text, 0, 1000, &flow->overhead_bytes);
	case KEY_UNSENT:
		return parse_quantity(text, &flow->unsent_bytes) &&
		       flow->unsent_bytes > 0 &&
		       flow->unsent_bytes <= INT32_MAX / 4;
	case KEY_SEED:
		if (!parse_integer(text, 0, TIME_NEVER, &number))
			return false;
		flow->seed = number;
		return true;
	case KEY_CONNECT:
		return parse_choice(text, "start", "early", &flow->early);
	case KEY_SOURCE:
		return parse_choice(text, "open", "closed", &flow->closed);
	case KEY_FLOOR:
		return parse_quantity(text, &flow->floor_bps) &&
		       flow->floor_bps > 0;
	case KEY_ECN:
		if (!parse_integer(text, 0, 1, &number))
			return false;
		flow->tos = number ? IPTOS_ECN_ECT1 : IPTOS_ECN_ECT0;
		return true;
	case KEY_LAW:
		flow->paired = !strcmp(text, "pp");
		return flow->paired;
	case KEY_SETPOINT:
		if (!parse_integer(text, 1, WIRE_SETPOINT_MAX, &number))
			return false;
		flow->setpoint = number;
		return true;
	case KEY_REPORT:
		if (!parse_decimal(text, 4, false, &number) || number < 1 ||
		    number > WIRE_QUARTERS_MAX)
			return false;
		flow->report_quarters = number;
		return true;
	case KEY_FRAME:
		return parse_quantity(text, &flow->frame_bytes) &&
		       flow->frame_bytes > 0 &&
		       flow->frame_bytes <= FRAME_MAX;
	case KEY_EVERY:
		return parse_seconds(text, &flow->every_ns) &&
		       flow->every_ns >= FRAME_EVERY_MIN_NS &&
		       flow->every_ns <= FRAME_EVERY_MAX_NS;
	case KEY_TOLD:
		return parse_told(flow, text);
	case KEY_COUNT:
		break;
	}
	return false;
}

/* Check that the words of a line with law= can be used together. */
static void check_paired(const struct flow_file *file,
			 const struct flow_config *flow, uint64_t given)
{
	const uint64_t paired_only = 1ULL << KEY_SETPOINT | 1ULL << KEY_REPORT |
				     1ULL << KEY_FRAME | 1ULL << KEY_EVERY;
	const uint64_t frame_only = 1ULL << KEY_EVERY | 1ULL << KEY_FLOOR;

	if (!flow->paired) {
		if (given & paired_only)
			bad_line(file, flow->line, "%s= needs law=",
				 key_names[__builtin_ctzll(given & paired_only)]);
		return;
	}
	if (given & 1ULL << KEY_ARRIVAL)
		bad_line(file, flow->line,
			 "arrival= and law= exclude each other");
	if (flow->size_bytes < (int64_t)sizeof(struct wire_pair) + 1 ||
	    flow->size_bytes > PAIR_SIZE_MAX)
		bad_line(file, flow->line,
			 "size=%lld: with law= from %zu to %d",
			 (long long)flow->size_bytes,
			 sizeof(struct wire_pair) + 1, PAIR_SIZE_MAX);
	if (flow->frame_bytes && !flow->every_ns)
		bad_line(file, flow->line, "frame= needs every=");
	if (!flow->frame_bytes && given & frame_only)
		bad_line(file, flow->line, "%s= needs frame= (law=)",
			 key_names[__builtin_ctzll(given & frame_only)]);
	if (flow->frame_bytes && (flow->on.ns || flow->bytes))
		bad_line(file, flow->line, "%s= and frame= exclude each other",
			 flow->bytes ? "bytes" : "on");
}

/* Check that the words of a line can be used together. */
static void check_flow(const struct flow_file *file,
		       const struct flow_config *flow, uint64_t given)
{
	static const enum flow_key required[] = { KEY_ID, KEY_DST, KEY_PORT };
	const uint64_t http_only = 1ULL << KEY_OBJECTS | 1ULL << KEY_OBJECT_MEAN |
				   1ULL << KEY_OBJECT_MIN |
				   1ULL << KEY_OBJECT_MAX |
				   1ULL << KEY_CONNECTIONS;
	const uint64_t tcp_only = 1ULL << KEY_CC | 1ULL << KEY_BYTES |
				  1ULL << KEY_REPEAT | 1ULL << KEY_UNSENT |
				  1ULL << KEY_PAGES | 1ULL << KEY_CONNECT |
				  1ULL << KEY_SOURCE | 1ULL << KEY_FLOOR |
				  1ULL << KEY_TOLD | http_only;
	const uint64_t mmpp_only = 1ULL << KEY_STATES | 1ULL << KEY_HOLD |
				   1ULL << KEY_LOW;
	const uint64_t udp_only = 1ULL << KEY_ARRIVAL | 1ULL << KEY_ECN |
				  1ULL << KEY_LAW | mmpp_only;
	const uint64_t rate_only = 1ULL << KEY_SIZE | 1ULL << KEY_OVERHEAD |
				   1ULL << KEY_SOURCE | 1ULL << KEY_FLOOR;
	/* These have another meaning with law=. */
	const uint64_t paired_too = 1ULL << KEY_BYTES | 1ULL << KEY_FLOOR;
	uint64_t wrong = given & (!flow->udp ? udp_only : flow->paired ?
				  tcp_only & ~paired_too : tcp_only);
	bool produced = !flow->udp && flow->rate_bps;
	size_t i;

	for (i = 0; i < sizeof(required) / sizeof(required[0]); i++)
		if (!(given & 1ULL << required[i]))
			bad_line(file, flow->line, "%s= is missing",
				 key_names[required[i]]);
	if (wrong)
		bad_line(file, flow->line, "%s= is not for proto=%s",
			 key_names[__builtin_ctzll(wrong)],
			 flow->udp ? "udp" : "tcp");
	if (flow->udp && !flow->rate_bps)
		bad_line(file, flow->line, "rate= is missing (proto=udp)");
	check_paired(file, flow, given);
	if (!flow->modulated && given & mmpp_only)
		bad_line(file, flow->line, "%s= needs arrival=mmpp",
			 key_names[__builtin_ctzll(given & mmpp_only)]);
	if (flow->modulated && !(given & 1ULL << KEY_HOLD))
		bad_line(file, flow->line, "hold= is missing (arrival=mmpp)");
	if (flow->modulated && flow->on.ns)
		bad_line(file, flow->line,
			 "on= and arrival=mmpp exclude each other");
	if (flow->mmpp.low_bps > flow->rate_bps)
		bad_line(file, flow->line, "low= is above rate=");
	if (!flow->rate_bps && given & rate_only)
		bad_line(file, flow->line, "%s= needs rate=",
			 key_names[__builtin_ctzll(given & rate_only)]);
	if (produced && !(given & 1ULL << KEY_SIZE))
		bad_line(file, flow->line, "size= is missing (rate= of TCP)");
	if (flow->closed && !flow->on.ns)
		bad_line(file, flow->line, "source=closed needs on=");
	if (flow->floor_bps > flow->rate_bps)
		bad_line(file, flow->line, "floor= is above rate=");
	if (flow->bytes && flow->on.ns && !produced)
		bad_line(file, flow->line,
			 "on= and bytes= exclude each other without rate=");
	if (flow->http && (flow->bytes || flow->on.ns || produced))
		bad_line(file, flow->line, "%s= and pages= exclude each other",
			 flow->bytes ? "bytes" : flow->on.ns ? "on" : "rate");
	if (flow->repeat != 1 && (flow->early || produced))
		bad_line(file, flow->line, "repeat= and %s exclude each other",
			 flow->early ? "connect=early" : "rate=");
	if (flow->early && flow->http)
		bad_line(file, flow->line,
			 "connect=early and pages= exclude each other");
	if (!flow->http && given & http_only)
		bad_line(file, flow->line, "%s= needs pages=",
			 key_names[__builtin_ctzll(given & http_only)]);
	if (given & 1ULL << KEY_REPEAT && !flow->bytes && !flow->http)
		bad_line(file, flow->line, "repeat= needs bytes= or pages=");
	if (given & 1ULL << KEY_OFF && !flow->on.ns && !flow->http &&
	    !(given & 1ULL << KEY_REPEAT))
		bad_line(file, flow->line,
			 "off= needs on=, repeat= or pages=");
	if (flow->on.ns && !(given & 1ULL << KEY_OFF))
		bad_line(file, flow->line, "on= needs off=");
	if (flow->stop_ns <= flow->start_ns)
		bad_line(file, flow->line, "stop= is not after start=");
}

/* Defaults of the words that pages= needs. */
static void complete_http(const struct flow_file *file,
			  struct flow_config *flow, uint64_t given)
{
	if (!(given & 1ULL << KEY_REPEAT))
		flow->repeat = 0;
	if (!(given & 1ULL << KEY_OFF))
		flow->off = (struct span){
			.ns = HTTP_OFF_NS,
			.exponential = true,
		};
	if (!pages_solve(&flow->pages))
		bad_line(file, flow->line,
			 "object-mean=%lld: no Pareto distribution from object-min=%lld to object-max=%lld has this mean",
			 (long long)flow->pages.mean_bytes,
			 (long long)flow->pages.min_bytes,
			 (long long)flow->pages.max_bytes);
}

/* Defaults of arrival=mmpp: the rates are in proportion to those given. */
static void complete_mmpp(struct flow_config *flow)
{
	struct mmpp *mmpp = &flow->mmpp;

	mmpp->high_bps = flow->rate_bps;
	if (!mmpp->low_bps)
		mmpp->low_bps = flow->rate_bps / mmpp->states;
	/* A rate of 0 would have no next packet. */
	if (!mmpp->low_bps)
		mmpp->low_bps = 1;
}

/* Returns false if the line has no flow. */
static bool parse_line(const struct flow_file *file, char *text,
		       struct flow_config *flow)
{
	uint64_t given = 0;
	char *word, *value;
	int key;

	text[strcspn(text, "#")] = '\0';
	while ((word = strtok_r(text, " \t\r\n", &text))) {
		value = strchr(word, '=');
		if (!value)
			bad_line(file, flow->line, "'%s' is not key=value",
				 word);
		*value++ = '\0';
		for (key = 0; key < KEY_COUNT; key++)
			if (!strcmp(word, key_names[key]))
				break;
		if (key == KEY_COUNT)
			bad_line(file, flow->line, "unknown key '%s'", word);
		if (given & 1ULL << key)
			bad_line(file, flow->line, "%s= is given twice", word);
		given |= 1ULL << key;
		if (!parse_value(flow, key, value))
			bad_line(file, flow->line, "%s=%s: expected %s", word,
				 value, key_expects(key));
	}
	if (!given)
		return false;
	check_flow(file, flow, given);
	if (flow->http)
		complete_http(file, flow, given);
	if (flow->modulated)
		complete_mmpp(flow);
	if (!(given & 1ULL << KEY_SEED))
		flow->seed = flow->id;
	return true;
}

static int compare_ids(const void *left, const void *right)
{
	const struct flow_config *a = *(const struct flow_config **)left;
	const struct flow_config *b = *(const struct flow_config **)right;

	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->line < b->line ? -1 : 1;
}

static void check_unique(const struct flow_file *file)
{
	const struct flow_config **order;
	size_t i;

	order = checked_alloc(calloc(file->count, sizeof(*order)));
	for (i = 0; i < file->count; i++)
		order[i] = &file->flows[i];
	qsort(order, file->count, sizeof(*order), compare_ids);
	for (i = 1; i < file->count; i++)
		if (order[i]->id == order[i - 1]->id)
			bad_line(file, order[i]->line,
				 "id=%u is already used in line %u",
				 order[i]->id, order[i - 1]->line);
	free(order);
}

void flow_file_read(struct flow_file *file, const char *path)
{
	bool standard_input = !strcmp(path, "-");
	size_t room = 0, capacity = 0;
	unsigned int number = 0;
	char *text = NULL;
	FILE *stream;

	file->name = standard_input ? "standard input" : path;
	stream = standard_input ? stdin : fopen(path, "re");
	if (!stream)
		die(STATUS_USAGE, "cannot read %s: %s", path, strerror(errno));
	while (getline(&text, &capacity, stream) >= 0) {
		struct flow_config *flow;

		if (file->count == room) {
			room = room ? 2 * room : 64;
			file->flows =
				checked_reallocarray(file->flows, room,
						     sizeof(*file->flows));
		}
		flow = &file->flows[file->count];
		*flow = (struct flow_config){
			.line = ++number,
			.prio = -1,
			.mark = -1,
			.stop_ns = TIME_NEVER,
			.repeat = 1,
			.size_bytes = UDP_SIZE_DEFAULT,
			.setpoint = SETPOINT_DEFAULT,
			.mmpp.states = MMPP_STATES,
			.pages = {
				.objects = HTTP_OBJECTS,
				.mean_bytes = HTTP_MEAN_BYTES,
				.min_bytes = HTTP_MIN_BYTES,
				.max_bytes = HTTP_MAX_BYTES,
			},
		};
		if (parse_line(file, text, flow))
			file->count++;
	}
	if (ferror(stream))
		die(STATUS_USAGE, "cannot read %s: %s", file->name,
		    strerror(errno));
	if (!standard_input)
		fclose(stream);
	free(text);
	if (!file->count)
		die(STATUS_USAGE, "%s: no flow in it", file->name);
	check_unique(file);
}

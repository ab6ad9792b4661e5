/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A JSON writer: keys in the order written, integers and decimal times only.
 *
 * A regular file appears completely or not at all: the text is written to a temporary
 * file beside it, which is renamed at the end. The temporary file is opened before the
 * run, so that a directory without write permission is reported before the experiment.
 * Devices and pipes are written directly.
 */
#ifndef TOLLWAY_JSON_H
#define TOLLWAY_JSON_H

#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traffic_common.h"

#define JSON_BUFFER_BYTES	(256 * 1024)

struct json {
	FILE *stream;
	char *path;		/* final name, also for messages */
	char *temporary;	/* NULL if the file is written directly */
	bool comma;		/* the next value needs a comma before it */
	bool begun;		/* something is written */
};

/* An exit handler removes this file unless it was committed. */
static char *json_uncommitted;

static inline void json_remove_uncommitted(void)
{
	if (json_uncommitted)
		unlink(json_uncommitted);
}

static inline void json_open(struct json *json, const char *path)
{
	char resolved[PATH_MAX];
	struct stat status;

	*json = (struct json){ 0 };
	if (!strcmp(path, "-")) {
		json->path = "standard output";
		json->stream = stdout;
		return;
	}
	/* Replace what a symbolic link points to, not the link. */
	if (realpath(path, resolved))
		path = resolved;
	json->path = checked_alloc(strdup(path));
	if (!stat(path, &status) && !S_ISREG(status.st_mode)) {
		json->stream = fopen(path, "we");
	} else {
		if (asprintf(&json->temporary, "%s.%d.tmp", path,
			     (int)getpid()) < 0)
			die(STATUS_FAILED, "out of memory");
		json->stream = fopen(json->temporary, "we");
	}
	if (!json->stream)
		die(STATUS_USAGE, "cannot write %s: %s", path,
		    strerror(errno));
	if (json->temporary) {
		json_uncommitted = json->temporary;
		atexit(json_remove_uncommitted);
	}
	setvbuf(json->stream, NULL, _IOFBF, JSON_BUFFER_BYTES);
}

/* Finish the file. Prints a message and returns false if writing failed. */
static inline bool json_commit(struct json *json)
{
	bool failed;
	int error;

	fputc('\n', json->stream);
	failed = fflush(json->stream) != 0 || ferror(json->stream);
	error = errno;
	if (json->stream != stdout && fclose(json->stream) != 0 && !failed) {
		failed = true;
		error = errno;
	}
	if (!failed && json->temporary &&
	    rename(json->temporary, json->path) != 0) {
		failed = true;
		error = errno;
	}
	if (failed) {
		complain("cannot write %s: %s", json->path, strerror(error));
		return false;
	}
	json_uncommitted = NULL;
	return true;
}

static inline void json_text(struct json *json, const char *text)
{
	fputc('"', json->stream);
	for (; *text; text++) {
		unsigned char c = *text;

		if (c == '"' || c == '\\')
			fprintf(json->stream, "\\%c", c);
		else if (c < 0x20)
			fprintf(json->stream, "\\u%04x", c);
		else
			fputc(c, json->stream);
	}
	fputc('"', json->stream);
}

/* Write the comma and the key before a value; @key is NULL inside an array. */
static inline void json_key(struct json *json, const char *key)
{
	if (json->comma)
		fputc(',', json->stream);
	json->comma = true;
	if (key) {
		json_text(json, key);
		fputc(':', json->stream);
	}
}

static inline void json_begin(struct json *json, const char *key, char bracket)
{
	json_key(json, key);
	/* One object on each line, for readers and for diff. */
	if (!key && bracket == '{' && json->begun)
		fputc('\n', json->stream);
	json->begun = true;
	fputc(bracket, json->stream);
	json->comma = false;
}

static inline void json_end(struct json *json, char bracket)
{
	fputc(bracket, json->stream);
	json->comma = true;
}

static inline void json_integer(struct json *json, const char *key,
				int64_t value)
{
	json_key(json, key);
	fprintf(json->stream, "%" PRId64, value);
}

static inline void json_null(struct json *json, const char *key)
{
	json_key(json, key);
	fputs("null", json->stream);
}

static inline void json_boolean(struct json *json, const char *key, bool value)
{
	json_key(json, key);
	fputs(value ? "true" : "false", json->stream);
}

static inline void json_string(struct json *json, const char *key,
			       const char *value)
{
	if (!value) {
		json_null(json, key);
		return;
	}
	json_key(json, key);
	json_text(json, value);
}

/* Nanoseconds as seconds with nine decimals; TIME_UNSET is null. */
static inline void json_seconds(struct json *json, const char *key, int64_t ns)
{
	uint64_t magnitude = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;

	if (ns == TIME_UNSET) {
		json_null(json, key);
		return;
	}
	json_key(json, key);
	fprintf(json->stream, "%s%" PRIu64 ".%09" PRIu64, ns < 0 ? "-" : "",
		magnitude / (uint64_t)NSEC_PER_SEC,
		magnitude % (uint64_t)NSEC_PER_SEC);
}

/* A list of the same field of each element of an array, in their order. */
#define JSON_COLUMN(to, name, array, rows, field) do {			\
	struct json *column_to = (to);					\
	size_t column_rows = (rows), column_row;			\
									\
	json_begin(column_to, name, '[');				\
	for (column_row = 0; column_row < column_rows; column_row++)	\
		json_integer(column_to, NULL,				\
			     (array)[column_row].field);		\
	json_end(column_to, ']');					\
} while (0)

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a profile's text.  What is taken must show as a profile that is taken
 * again and shows the same; the inputs in corpus/profile.txt are replayed by `make check-all`.
 */

#include "profiles/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The shown profile lives in the writer. */
static struct blob show(struct json_writer *w, const struct config *c)
{
	struct blob text;
	struct cj_error err = { 0 };

	profile_write(w, c);
	if (json_writer_take(w, &text, &err) < 0)
		abort();
	return text;
}

static void read_back(struct blob text)
{
	struct config c;
	const char *extends;
	struct cj_error err = { 0 };
	auto_json_writer struct json_writer *w = json_writer_create(false);

	config_init(&c);
	if (!w || profile_read_text(&c, "shown", text.bytes, text.size, &extends, &err) < 0)
		abort();
	struct blob again = show(w, &c);
	if (again.size != text.size || memcmp(again.bytes, text.bytes, text.size) != 0)
		abort();
	config_fini(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct config c;
	const char *extends;
	struct cj_error err = { 0 };

	config_init(&c);
	if (profile_read_text(&c, "fuzz.json", (const char *)bytes, size, &extends, &err) == 0) {
		auto_json_writer struct json_writer *w = json_writer_create(false);
		if (!w)
			abort();
		read_back(show(w, &c));
	} else if (err.code <= 0 || err.msg[0] == '\0') {
		abort(); /* refused without a message */
	}
	config_fini(&c);
	return 0;
}

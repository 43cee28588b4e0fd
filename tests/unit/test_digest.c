/* Digests are those of libmd, with or without the processor's instructions, of texts of any length and of files. */
#include "base/digest.h"
#include "random.h"

#include <sha2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 70000 };

static void
by_libmd(const unsigned char *data, size_t size, char text[DIGEST_ROOM])
{
	SHA2_CTX sha;
	uint8_t sum[SHA256_DIGEST_LENGTH];
	SHA256Init(&sha);
	SHA256Update(&sha, data, size);
	SHA256Final(sum, &sha);
	strcpy(text, "sha256:");
	for (int i = 0; i < SHA256_DIGEST_LENGTH; i++)
		sprintf(text + strlen(text), "%02x", sum[i]);
}

static bool
same_in_file(const unsigned char *data, size_t size, const char *want)
{
	char digest[DIGEST_ROOM] = "";
	FILE *file = tmpfile();
	bool good = file && fwrite(data, 1, size, file) == size && fflush(file) == 0
	    && digest_of_file(fileno(file), digest) && strcmp(digest, want) == 0;
	if (file)
		fclose(file);
	return good;
}

int
main(void)
{
	unsigned char *data = malloc(MOST);
	int wrong = 0, wrong_file = 0, failed = 0;
	for (int i = 0; i < MOST; i++)
		data[i] = (unsigned char)below(256);
	for (size_t size = 0; size < MOST; size += size < 700 ? 1 : 977) {
		char found[DIGEST_ROOM], want[DIGEST_ROOM];
		digest_of((const char *)data, size, found);
		by_libmd(data, size, want);
		wrong += strcmp(found, want) != 0;
		wrong_file += size % 7 == 0 && !same_in_file(data, size, want);
	}
	failed += report(wrong, "texts of any length");
	failed += report(wrong_file, "files");
	char nothing[DIGEST_ROOM];
	failed += report(digest_of_file(-1, nothing), "no file");
	free(data);
	return failed > 0;
}

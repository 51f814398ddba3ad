/*-------------------------------------------------------------------------
 *
 * rpin_fuzz.c
 *	  What the fuzzer's targets share.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_fuzz.h"

#include <sanitizer/allocator_interface.h>
#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* With room for what is put around an input. */
#define FENCED (RPIN_FUZZ_LIMIT + 4096)

/* Of this thread: the fuzzer has one of its own. */
static __thread bool counting;
static __thread RpinFuzzMemory memory;

void
rpin_fuzz_fail(const char *condition, const char *file, int line)
{
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
	abort();
}

/* The end of memory that can be used, before a page that cannot. */
static char *
end_of_memory(void)
{
	static char *end;

	if (end == NULL)
	{
		char	   *begin = mmap(NULL, FENCED + (size_t) getpagesize(), PROT_READ | PROT_WRITE,
								 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		rpin_fuzz_check(begin != MAP_FAILED);
		rpin_fuzz_check(FENCED % getpagesize() == 0);
		end = begin + FENCED;
		rpin_fuzz_check(mprotect(end, (size_t) getpagesize(), PROT_NONE) == 0);
	}
	return end;
}

const char *
rpin_fuzz_fence(const char *before, const char *data, size_t size, const char *behind)
{
	size_t		length = strlen(before) + size + strlen(behind);
	char	   *end = end_of_memory();
	char	   *text = end - length;

	rpin_fuzz_check(length <= FENCED);
	ASAN_UNPOISON_MEMORY_REGION(end - FENCED, FENCED);
	memcpy(text, before, strlen(before));
	if (size > 0)
		memcpy(text + strlen(before), data, size);
	memcpy(end - strlen(behind), behind, strlen(behind));
	ASAN_POISON_MEMORY_REGION(end - FENCED, FENCED - length);
	return text;
}

static void
on_malloc(const volatile void *pointer, size_t size)
{
	if (!counting)
		return;
	memory.count++;
	memory.kept++;
	memory.bytes += size;
}

static void
on_free(const volatile void *pointer)
{
	if (counting && pointer != NULL)
		memory.kept--;
}

void
rpin_fuzz_memory_begin(void)
{
	static bool installed;

	if (!installed)
		rpin_fuzz_check(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) > 0);
	installed = true;
	memory = (RpinFuzzMemory)
	{
		0
	};
	counting = true;
}

RpinFuzzMemory
rpin_fuzz_memory_end(void)
{
	counting = false;
	return memory;
}

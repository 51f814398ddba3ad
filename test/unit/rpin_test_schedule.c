/*-------------------------------------------------------------------------
 *
 * rpin_test_schedule.c
 *	  Coroutines, and a scheduler that tries every order.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_test_schedule.h"

#include <ucontext.h>

#define MOST_COROUTINES 8
#define MOST_STEPS 128
#define STACK_SIZE (64 * 1024)
#define MOST_STATES (UINT64_C(1) << 20)

/*
 * ucontext gives a coroutine its stack.  All later changes between stacks are
 * jumps: each swapcontext() would be two system calls, and there are millions.
 */
typedef struct Coroutine
{
	jmp_buf		entry;			/* where its body begins */
	jmp_buf		stop;			/* where it stopped */
	void		(*body) (int argument);
	int			argument;
	bool		finished;
	uint64_t	rests;			/* how often it stopped without a word */
	uint64_t	read;			/* a hash of that and the values read since */
} Coroutine;

/* One of those that could go on, and how many there were. */
typedef struct Pick
{
	int			which;
	int			of;
} Pick;

static Coroutine coroutine[MOST_COROUTINES];
static char stack[MOST_COROUTINES][STACK_SIZE] __attribute__((aligned(16)));
static int	coroutine_count;
static int	stack_count;		/* coroutines that have their stack */
static Coroutine *running;
static jmp_buf scheduler;

/* The states that were seen, by their hash; 0 is a free place. */
static uint64_t seen[MOST_STATES];
static uint64_t seen_count;

uint64_t
rpin_test_hash(uint64_t hash, const void *memory, size_t size)
{
	const char *next = memory;

	assert_int_equal(size % sizeof(uint64_t), 0);
	for (; size > 0; size -= sizeof(uint64_t), next += sizeof(uint64_t))
	{
		uint64_t	word;

		memcpy(&word, next, sizeof(word));
		hash = rpin_test_mix(hash * 31 + word + 1);
	}
	return hash;
}

/* What the coroutine is about to read is known when it goes on. */
void
rpin_test_step(const uint64_t *word)
{
	/* Preparing and judging is not scheduled. */
	if (running == NULL)
		return;
	if (_setjmp(running->stop) == 0)
		_longjmp(scheduler, 1);
	if (word == NULL)
		running->read = ++running->rests;
	else
		running->read = rpin_test_mix(running->read * 31 + *word + 1);
}

/* On the stack of the coroutine.  Never returns; begins anew at its entry. */
static void
live(void)
{
	_setjmp(running->entry);
	running->body(running->argument);
	running->finished = true;
	running->read = 0;
	_longjmp(scheduler, 1);
}

static void
resume(Coroutine *which, jmp_buf from)
{
	running = which;
	if (_setjmp(scheduler) == 0)
		_longjmp(from, 1);
	running = NULL;
}

/* Enters a coroutine on its new stack, up to its first stop. */
static void
make_stack(int which)
{
	ucontext_t	context;

	getcontext(&context);
	context.uc_stack.ss_sp = stack[which];
	context.uc_stack.ss_size = STACK_SIZE;
	context.uc_link = NULL;
	makecontext(&context, live, 0);
	running = &coroutine[which];
	if (_setjmp(scheduler) == 0)
		setcontext(&context);
	running = NULL;
}

/* Brings a coroutine from its beginning to its first stop. */
static void
begin_anew(int which)
{
	Coroutine  *each = &coroutine[which];

	each->finished = false;
	each->rests = each->read = 0;
	if (which < stack_count)
		resume(each, each->entry);
	else
	{
		make_stack(which);
		stack_count++;
	}
}

static int
unfinished(void)
{
	int			count = 0;

	for (int i = 0; i < coroutine_count; i++)
		count += !coroutine[i].finished;
	return count;
}

/* Lets the which-th of those that have not finished go on. */
static void
resume_picked(int which)
{
	int			i = 0;

	while (coroutine[i].finished || which-- > 0)
		i++;
	resume(&coroutine[i], coroutine[i].stop);
}

/* Was this state seen before?  From now on it was. */
static bool
was_seen(uint64_t state)
{
	uint64_t	place;

	for (int i = 0; i < coroutine_count; i++)
		state = rpin_test_mix(state * 31 + coroutine[i].read * 2 +
							  coroutine[i].finished);
	state |= 1;
	for (place = state % MOST_STATES; seen[place] != 0;
		 place = (place + 1) % MOST_STATES)
		if (seen[place] == state)
			return true;
	assert_true(++seen_count < MOST_STATES / 2);
	seen[place] = state;
	return false;
}

/*
 * Runs the coroutines as the first `count` picks say, and from there on with the
 * first of each, to their end or to a state that was seen.  How many picks it
 * came to.
 */
static int
run_schedule(const RpinTestCalls *calls, Pick *pick, int count)
{
	calls->begin();
	for (int i = 0; i < coroutine_count; i++)
		begin_anew(i);
	for (int step = 0;; step++)
	{
		int			of = unfinished();

		calls->check();
		if (of == 0)
			calls->end();
		if (of == 0 || (step >= count && was_seen(calls->state())))
			return step;
		assert_true(step < MOST_STEPS);
		if (step >= count)
			pick[step] = (Pick) {0, of};

		/* The same picks lead to the same place, or all this means nothing. */
		assert_int_equal(pick[step].of, of);
		resume_picked(pick[step].which);
	}
}

/*
 * The last pick that has another choice takes it; what follows is open.  0 when
 * there is none.
 */
static int
next_schedule(Pick *pick, int count)
{
	while (count > 0 && pick[count - 1].which + 1 == pick[count - 1].of)
		count--;
	if (count > 0)
		pick[count - 1].which++;
	return count;
}

void
rpin_test_schedule_clear(void)
{
	coroutine_count = 0;
}

void
rpin_test_schedule_add(void (*body) (int argument), int argument)
{
	assert_true(coroutine_count < MOST_COROUTINES);
	coroutine[coroutine_count].body = body;
	coroutine[coroutine_count].argument = argument;
	coroutine_count++;
}

void
rpin_test_schedule_run(const RpinTestCalls *calls)
{
	Pick		pick[MOST_STEPS];
	int			count = 0;

	memset(seen, 0, sizeof(seen));
	seen_count = 0;
	do
	{
		count = run_schedule(calls, pick, count);
		count = next_schedule(pick, count);
	} while (count > 0);
	printf("%d coroutines, %llu states\n", coroutine_count,
		   (unsigned long long) seen_count);
}

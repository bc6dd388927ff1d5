/* token.pml: the terms of fencing tokens over promotions, recoveries from any old copy, and counters that become full.
 *
 * The arithmetic of bucket/replicated/round.go (nextTerm, bounded), without locks, nodes and time. Each epoch has one promotion.
 * A token is (term, counter), and a counter begins anew with each term. So no token comes twice if each term that comes is above
 * all that were ever begun, in whatever history: also in one that was left before its first change was confirmed, since a
 * recovery may go on with that and answer what is in it.
 */
#ifndef MAXE
#define MAXE 12         /* epochs */
#endif
#ifndef COPIES
#define COPIES 2        /* old copies at a time */
#endif
#ifndef FULL
#define FULL 2          /* how often a counter becomes full in one epoch (2^29 tokens each) */
#endif

byte epoch = 1;
byte term = 2; byte since = 1;                        /* the present history: its term, the epoch of its promotion */
bool sure = true; byte anTerm; byte anSince;           /* its first change is confirmed; else what it goes on from */
byte fills;                                           /* counters that became full in this epoch */
byte oldTerm[COPIES]; byte oldSince[COPIES];          /* a copy with an earlier end; 0, 0 is an empty one */
byte top = 2;                                         /* the highest term that was ever begun */
byte t;                                               /* used within one step only */

#ifdef THREE_PER_EPOCH
#define PER 3
#else
#define PER 4
#endif
#define bounded(n) ((n) * PER < 2 -> 2 : (n) * PER)
#define atleast(x) if :: t < (x) -> t = (x) :: else fi

inline used() {
	assert(term > top); top = term; t = 0
#ifdef REACH_THREE_NESTED_RECOVERIES
	; assert(nested < 3)                              /* must fail */
#endif
}
#ifdef REACH_THREE_NESTED_RECOVERIES
byte nested;
#endif

inline begun() { since = epoch; fills = 0; sure = false; used() }

/* e, l: the epoch and the term of the last promotion in the history that it goes on with; all of them have what was answered */
inline takeOver(e, l) {
	epoch++; t = (l) + 2;
#if !defined(TAKEOVER_ADDS_TWO) && !defined(FORMER_RULE)
	atleast(bounded(epoch) - 2);
#endif
#ifdef REACH_THREE_NESTED_RECOVERIES
	nested = 0;
#endif
	printf("EPOCH %d: takeover with the history of epoch %d, term %d: term %d, the highest before was %d\n", epoch, e, l, t, top);
	anSince = (e); anTerm = (l); term = t; begun()
}

/* e, l: the epoch and the term of the last promotion in the history that the recovery goes on with */
inline recover(e, l) {
	epoch++;
	t = (l) + 2;
#ifdef TOKEN_WITHOUT_EPOCH
	skip;
#elif defined(FORMER_RULE)
	t = (l) + 2 * (epoch - (e)) + 1;
#elif defined(COUNTED_FROM_THE_COPY)
	atleast((l) + bounded(epoch - (e)) - 2);
#else
	atleast(bounded(epoch) - 2);
	atleast((l) + bounded(epoch - (e)) - 2);
#endif
	printf("EPOCH %d: recovery from a copy of epoch %d and term %d: term %d, the highest before was %d\n", epoch, e, l, t, top);
	anSince = (e); anTerm = (l); term = t;
#ifdef REACH_THREE_NESTED_RECOVERIES
	nested++;
#endif
	begun()
}

active proctype bucket() {
	do
	:: d_step { epoch < MAXE -> takeOver(since, term) }
#ifndef ALL_CONFIRMED
	:: d_step { epoch < MAXE && !sure -> takeOver(anSince, anTerm) }
#endif
	:: d_step { !sure -> sure = true; anSince = 0; anTerm = 0; printf("its first change is confirmed\n") }
	:: d_step { epoch < MAXE -> recover(oldSince[0], oldTerm[0]) }
#if COPIES > 1
	:: d_step { epoch < MAXE -> recover(oldSince[1], oldTerm[1]) }
#endif
	:: d_step { fills < FULL -> fills++; term++; printf("a counter is full: term %d\n", term); used() }
	:: d_step { oldTerm[0] != term -> oldTerm[0] = term; oldSince[0] = since; printf("copy 0 gets this far\n") }
#if COPIES > 1
	:: d_step { oldTerm[1] != term -> oldTerm[1] = term; oldSince[1] = since; printf("copy 1 gets this far\n") }
#endif
	od
}

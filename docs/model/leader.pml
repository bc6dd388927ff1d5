/* leader.pml: which node may act until when: leases of nodes, ReadIndex, leaders that change, views, fence, seal.
 *
 * Two nodes, one bucket; the leader is a third machine. Time is the order of events: a node's lease is an interval that it counts
 * from its own sending, a bit of alive, which may end at any moment. A timer of a leader begins later, and is the set of the bits
 * that were on then: it may end only when all of those have. That is what 3/4 of the lease and rates below 1/7 give
 * (3/4 * 8/7 < 1), for every length of a pause; a process that is stopped is one that takes no step.
 * Raft is what it promises: a log of views, and an election that ends what the leader before can confirm or commit.
 */
#ifndef MAXE
#define MAXE 3          /* views */
#endif
#ifndef MAXT
#define MAXT 2          /* terms */
#endif

#define bit(n) (1 << (n))
#define ASK(n) (1 << (2 * (n)))                       /* from the sending of the question */
#define LEASE(n) (2 << (2 * (n)))                     /* the lease of the node */

byte alive;

/* The log, and who leads. prim: bit e is the primary of view e. */
byte epoch = 1; byte prim; byte term = 1; bool ready = true;
byte takeFrom;                                        /* timer: what older leaders may have granted */
byte granted[2];                                      /* timer: what this leader granted */
byte fence; byte floor[2];                            /* who gets no lease; with which index at least */
byte want;                                            /* the view with another primary that a leader wants, 0 if none */

/* A node. ask: 1 sent, 2 ReadIndex begun, 3 granted. */
byte vep[2]; byte sealed[2]; byte under[2];
byte ask[2]; byte index[2];
byte wish[2];                                         /* the view with the other primary that a primary asks for (hand-over) */
byte acted;                                           /* the newest epoch in which a node could act */

#define primary(e) ((prim >> (e)) & 1)
#define open(n) (vep[n] > sealed[n])
#ifdef NO_LEASE_CHECK
#define leased(n) true
#else
#define leased(n) ((alive & LEASE(n)) && vep[n] >= under[n])
#endif
#define acts(n) (primary(vep[n]) == (n) && open(n) && leased(n))

inline check() {
	assert(!(acts(0) && acts(1)));                    /* never both */
	if :: acts(0) -> assert(vep[0] >= acted); acted = vep[0] :: else fi;
	if :: acts(1) -> assert(vep[1] >= acted); acted = vep[1] :: else fi
#ifdef REACH_BACK_AND_FORTH
	; assert(!(acts(0) && vep[0] == 3))               /* must fail: taken over, and taken over again */
#endif
#ifdef REACH_TAKEOVER_IN_NEW_TERM
	; assert(!(acts(1) && sealed[0] == 0 && term == MAXT && ready))  /* must fail */
#endif
}

#define TIMERS(b) takeFrom = takeFrom & (15 - (b)); granted[0] = granted[0] & (15 - (b)); granted[1] = granted[1] & (15 - (b))
inline off(b) { alive = alive & (15 - (b)); TIMERS(b) }
inline become(a, b) {                                 /* the interval a goes on as b, in place of what b was */
	off(b);
	if
	:: alive & (a) -> alive = alive | (b);
		if :: takeFrom & (a) -> takeFrom = takeFrom | (b) :: else fi;
		if :: granted[0] & (a) -> granted[0] = granted[0] | (b) :: else fi;
		if :: granted[1] & (a) -> granted[1] = granted[1] | (b) :: else fi
	:: else
	fi;
	off(a)
}
inline forget(n) { ask[n] = 0; index[n] = 0; off(ASK(n)) }
#ifdef ACTS_BEFORE_INDEX
#define setUnder(n) under[n] = 0
#else
#define setUnder(n) under[n] = ((alive & LEASE(n)) -> index[n] : 0)
#endif

proctype node(byte n) {
	do
	:: d_step { vep[n] < epoch -> vep[n]++; printf("n%d applies view e%d, primary n%d\n", n, vep[n], primary(vep[n])); check() }

	:: d_step { ask[n] == 0 -> ask[n] = 1; off(ASK(n)); alive = alive | ASK(n); printf("n%d asks for a lease\n", n) }
	:: d_step { ask[n] == 3 && (alive & ASK(n)) ->
#ifdef COUNTED_FROM_RECEIPT
		off(LEASE(n)); off(ASK(n)); alive = alive | LEASE(n);
#else
		become(ASK(n), LEASE(n));
#endif
		setUnder(n); printf("n%d has a lease with the index of e%d\n", n, index[n]); forget(n); check() }
	:: d_step { ask[n] -> forget(n) }                  /* it does not wait any longer, or the answer is worth nothing any more */
	:: d_step { alive & LEASE(n) -> off(LEASE(n)); under[n] = 0; printf("the lease of n%d ends\n", n) }

	/* sealing, by order of a leader; and a hand-over */
	:: d_step { open(n) && epoch < MAXE && vep[n] == epoch -> sealed[n] = vep[n]; printf("n%d is sealed for e%d\n", n, vep[n]) }
	:: d_step { acts(n) && vep[n] < MAXE ->
#ifndef SKIP_SEAL
		sealed[n] = vep[n];
#endif
		wish[n] = vep[n] + 1; printf("n%d hands over with e%d\n", n, vep[n] + 1) }
	od
}

inline next() {
	prim = prim | (bit(epoch + 1) * (1 - primary(epoch))); epoch++;
	printf("COMMIT e%d, primary n%d\n", epoch, primary(epoch))
}
#ifdef LEADER_DOES_NOT_WAIT
#define waited true
#else
#define waited ((takeFrom & alive) == 0)
#endif
#ifdef NO_LEASE_END
#define over(n) waited
#else
#define over(n) (waited && (granted[n] & alive) == 0)
#endif
#define last primary(epoch)
#ifdef NO_FENCE
#define fenced(n) false
#else
#define fenced(n) (fence & bit(n))
#endif
#ifdef NO_FLOOR
#define high(n) true
#else
#define high(n) (index[n] >= floor[n])
#endif
#ifdef NO_COMPARE_AND_SET
#define fits(e) ((e) && epoch < MAXE)
#else
#define fits(e) ((e) == epoch + 1)
#endif
#define grants(n) (ask[n] == 2 && !fenced(n) && high(n))
#ifdef READ_BEFORE_FIRST_COMMAND
#define mayRead true
#else
#define mayRead ready
#endif
proctype leader() {
	do
	/* views: of primaries, and its own */
	:: d_step { fits(wish[0]) -> wish[0] = 0; next() }
	:: d_step { fits(wish[1]) -> wish[1] = 0; next() }
	:: d_step { wish[0] -> wish[0] = 0; printf("what n0 asks for is lost or refused\n") }
	:: d_step { wish[1] -> wish[1] = 0; printf("what n1 asks for is lost or refused\n") }
	:: d_step { ready && want == 0 && epoch < MAXE && (sealed[last] == epoch || over(last)) ->
		want = epoch + 1; fence = bit(last); printf("the leader takes the bucket from n%d with e%d\n", last, want) }
	:: d_step { fits(want) -> want = 0; if :: fence -> floor[last] = epoch + 1 :: else fi; fence = 0; next() }
	:: d_step { want && want <= epoch -> want = 0; fence = 0 }

	/* leases: a ReadIndex that begins after the question has arrived; confirmed by a majority in this term; granted */
	:: d_step { ask[0] == 1 && mayRead -> ask[0] = 2; index[0] = epoch; printf("the leader begins a ReadIndex for n0, at e%d\n", epoch) }
	:: d_step { ask[1] == 1 && mayRead -> ask[1] = 2; index[1] = epoch; printf("the leader begins a ReadIndex for n1, at e%d\n", epoch) }
	:: d_step { grants(0) -> ask[0] = 3; granted[0] = alive & 3; printf("the leader grants n0 a lease\n") }
	:: d_step { grants(1) -> ask[1] = 3; granted[1] = alive & 12; printf("the leader grants n1 a lease\n") }
#ifdef GRANTS_WITHOUT_MAJORITY
	:: d_step { ask[0] == 1 && term > 1 -> ask[0] = 3; index[0] = 1; printf("a deposed leader grants n0 a lease\n") }
	:: d_step { ask[1] == 1 && term > 1 -> ask[1] = 3; index[1] = 1; printf("a deposed leader grants n1 a lease\n") }
#endif

	/* Another leader. What the one before wanted is in its log or not; if not, it dies with the first command of this term.
	   What the one before had confirmed it may still answer, at any time; but no other question. */
	:: d_step { term < MAXT -> term++; ready = false; takeFrom = alive;
		if :: grants(0) -> ask[0] = 3; printf("the leader of before has granted n0 a lease\n") :: ask[0] == 2 && !grants(0) -> forget(0) :: else fi;
		if :: grants(1) -> ask[1] = 3; printf("the leader of before has granted n1 a lease\n") :: ask[1] == 2 && !grants(1) -> forget(1) :: else fi;
		granted[0] = 0; granted[1] = 0; floor[0] = 0; floor[1] = 0; fence = 0;
		printf("TERM %d begins\n", term) }
	:: d_step { !ready -> ready = true;
#ifndef OLD_DECISION_LIVES
		want = 0;
#endif
		printf("the first command of term %d is committed\n", term) }
	od
}

init { atomic {
	d_step { vep[0] = 1; vep[1] = 1; alive = LEASE(0); granted[0] = LEASE(0); under[0] = 1; acted = 1 };
	run node(0); run node(1); run leader()
} }

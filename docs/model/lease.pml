/* lease.pml: who may act until when: node leases of a leader that changes, views, hand-over, takeover, recovery, leases of clients.
 *
 * Time is the order of events. A lease is an interval that its holder counts from its own sending; a timer is counted from a later
 * event by somebody else. The promise (3/4 of the lease; clock rates differ by less than 1/7; 3/4 * 8/7 < 1) says just this: a timer
 * ends only when every interval of its kind whose sending was before the timer's start is over. So each interval is a bit of alive,
 * which may end at any time; starting a timer notes which bits are on; and it has ended when none of those is left. A process
 * that is stopped for any time is one that takes no step.
 *
 * The chain is simple here: a change reaches the whole set in one step (chain.pml has the steps of that).
 */
#ifndef MAXE
#define MAXE 4          /* epochs */
#endif
#ifndef MAXT
#define MAXT 2          /* terms of the control plane */
#endif
#ifndef MAXG
#define MAXG 3          /* grants */
#endif
#ifndef CRASHES
#define CRASHES 1       /* restarts with the disk */
#endif
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef N
#define N 2             /* nodes with copies */
#endif

#define bit(n) (1 << (n))
#define ASKBIT(n) (1 << (2 * (n)))                    /* in alive: from the sending of the question */
#define LEASEBIT(n) (2 << (2 * (n)))                  /* the node's lease */
#define REQBIT(c) (1 << (2 * (c)))                    /* in trust: from the sending of the client's request */
#define BELBIT(c) (2 << (2 * (c)))                    /* the client believes that it holds */

byte alive; byte trust;

/* The leader and the log. vset are the members of which an answer needs the confirmation. */
byte term = 1; bool ready = true; byte takeMask;
byte epoch = 1; byte vprim[MAXE + 1]; byte vset[MAXE + 1]; bool vrec[MAXE + 1];
byte lmask[N]; byte fence; byte floor[N];             /* what this leader granted; who gets none; with which index at least */
byte lE; byte lP; byte lS; bool lR; byte lH;          /* the view that it wants, and whose leases have ended for that */

/* A node. On its disk: vep, sealed, the table. */
byte vep[N]; byte sealed[N]; byte lead[N]; byte under[N]; byte nth[N];
byte phase[N]; byte askI[N]; bool askOld[N];          /* 1 sent, 2 ReadIndex begun, 3 confirmed, 4 granted */
byte holder[N]; byte waiter[N]; byte token[N];        /* the table: client + 1 */
byte hmask[N]; byte rmask[N];                         /* primary's timers: the hold's lease, the recovery */
byte pend[N]; byte qE[N]; byte qP[N]; byte qS[N]; bool qR[N]; /* the view that it asks for */

/* A client. reply: the token that its request was answered with. */
bool asked[2]; byte reply[2];

byte crashes = CRASHES; byte grants = MAXG; byte top; byte ansE;
/* used within one step only */
#define done x = 0; y = 0; z = 0
byte x; byte y; byte z; byte newH; byte newW; byte newT;

#ifdef NO_LEASE_CHECK
#define leased(n) true
#else
#define leased(n) ((alive & LEASEBIT(n)) && vep[n] >= under[n])
#endif
#define open(n) (vep[n] > sealed[n])
#define acting(n) (lead[n] && open(n) && leased(n))
#define needs(n) (vset[vep[n]] | pend[n])
#define with(n, m) (!(needs(n) & bit(m)) || (m) == (n) || (vep[m] == vep[n] && open(m)))
#if N == 3
#define all(n) (with(n, 0) && with(n, 1) && with(n, 2))
#else
#define all(n) (with(n, 0) && with(n, 1))
#endif
#define recovering(n) (vrec[vep[n]])

/* A change: the primary and all whose confirmation it needs have it. */
inline change(n) {
	y = 0;
	do
	:: y < N -> if :: y == n || (needs(n) & bit(y)) -> holder[y] = newH; waiter[y] = newW; token[y] = newT :: else fi; y++
	:: else -> break
	od;
	y = 0; newH = 0; newW = 0; newT = 0
}

inline answer(n, c) {
	assert(vep[n] >= ansE);                           /* no answer under a view that is over for others */
	ansE = vep[n]; reply[c] = token[n];
	printf("n%d answers client %d in epoch %d: token %d\n", n, c, vep[n], token[n])
}

inline grant(n, c) {                               /* newW is who waits then */
	grants--; nth[n]++;
#ifdef TOKEN_WITHOUT_EPOCH
	z = token[n] + 1;
#else
	z = lead[n] * 4 + nth[n];
#endif
	assert(z > top); top = z;                         /* tokens rise */
#ifdef REACH_GRANT_AFTER_RECOVERY
	assert(!(vrec[vep[n] - 1] && !vrec[vep[n]]));     /* must fail */
#endif
	newH = c + 1; newT = z; change(n);
	hmask[n] = trust;
	printf("n%d grants the lock to client %d\n", n, c);
	answer(n, c)
}

inline ask(n, prim, set, rec) { qE[n] = vep[n] + 1; qP[n] = prim; qS[n] = set; qR[n] = rec; pend[n] = set }

inline install(n) {
	z = (lead[n] && open(n) && vprim[vep[n] + 1] == n);
	vep[n]++; pend[n] = 0;
	if
	:: z -> printf("n%d goes on as the primary in epoch %d\n", n, vep[n])
	:: !z && vprim[vep[n]] == n ->
#ifdef REACH_HANDOVER_WITH_WAITER
		assert(!(waiter[n] && vset[vep[n]] == 3 && !vrec[vep[n]])); /* must fail: only a hand-over keeps both */
#endif
		lead[n] = vep[n]; nth[n] = 0;
#ifdef LEASES_NOT_RESTARTED
		hmask[n] = 0;
#else
		hmask[n] = trust;                             /* every lease begins anew */
#endif
#ifdef RECOVERY_DOES_NOT_WAIT
		rmask[n] = 0;
#elif defined(RECOVERY_NOT_RESTARTED)
		rmask[n] = (vrec[vep[n] - 1] -> 0 : trust);
#else
		rmask[n] = (vrec[vep[n]] -> trust : 0);
#endif
		printf("n%d takes over in epoch %d: client %d holds, client %d waits (1, 2; 0 nobody)\n", n, vep[n], holder[n], waiter[n])
	:: else -> lead[n] = 0; hmask[n] = 0; rmask[n] = 0; nth[n] = 0; printf("n%d learns e%d\n", n, vep[n])
	fi
}

#define req(n, c) (acting(n) && asked[c] && reply[c] == 0)

inline serve(n, c) {
	if
	:: holder[n] == c + 1 -> hmask[n] = trust; printf("n%d renews\n", n); answer(n, c)
	:: holder[n] == 0 && !recovering(n) && all(n) && grants > 0 -> newW = waiter[n]; grant(n, c)
	:: holder[n] != 0 && holder[n] != c + 1 && waiter[n] == 0 && all(n) ->
		newH = holder[n]; newW = c + 1; newT = token[n]; change(n); printf("client %d waits at n%d\n", c, n)
	:: else
	fi
}

/* No keep-alive for the whole lease: the hold ends, and the next one in the queue gets the lock, in one change. */
inline expire(n) {
	printf("n%d ends the hold of client %d\n", n, holder[n] - 1);
	if
	:: waiter[n] && !recovering(n) && grants > 0 -> x = waiter[n] - 1;
		if
		:: asked[x] && reply[x] == 0 -> newW = 0; grant(n, x)
		:: else -> newT = token[n]; change(n)
		fi; x = 0
	:: else -> newW = (recovering(n) -> waiter[n] : 0); newT = token[n]; change(n)
	fi
}

#define mayask(n) (acting(n) && pend[n] == 0 && qE[n] == 0 && vep[n] < MAXE)

inline addto(n, m) {
	holder[m] = holder[n]; waiter[m] = waiter[n]; token[m] = token[n];
	ask(n, n, bit(n) | bit(m), vrec[vep[n]]);
	printf("n%d asks for e%d with the set {n%d, n%d}\n", n, vep[n] + 1, n, m)
}
inline alone(n) { ask(n, n, bit(n), vrec[vep[n]]); printf("n%d asks for e%d with itself alone\n", n, vep[n] + 1) }
inline endrecovery(n) { ask(n, n, vset[vep[n]], false); printf("n%d asks for e%d: the recovery is over\n", n, vep[n] + 1) }
inline handover(n, m) {
	ask(n, m, vset[vep[n]], vrec[vep[n]]);
#ifndef SKIP_SEAL
	sealed[n] = vep[n];
#endif
	printf("n%d hands over to n%d with e%d\n", n, m, vep[n] + 1)
}

#define partner(n, m) ((m) != (n) && (vset[vep[n]] & bit(m)))

proctype node(byte me) {
	do
	:: d_step { vep[me] < epoch -> install(me); done }

	/* the primary */
	:: d_step { req(me, 0) -> serve(me, 0); done }
	:: d_step { req(me, 1) -> serve(me, 1); done }
	:: d_step { acting(me) && holder[me] && (hmask[me] & trust) == 0 && all(me) -> expire(me); done }
	:: d_step { mayask(me) && vset[vep[me]] == bit(me) && me != 0 && vep[0] == vep[me] && open(0) -> addto(me, 0); done }
	:: d_step { mayask(me) && vset[vep[me]] == bit(me) && me != 1 && vep[1] == vep[me] && open(1) -> addto(me, 1); done }
#if N == 3
	:: d_step { mayask(me) && vset[vep[me]] == bit(me) && me != 2 && vep[2] == vep[me] && open(2) -> addto(me, 2); done }
#endif
	:: d_step { mayask(me) && vset[vep[me]] != bit(me) -> alone(me); done }
	:: d_step { mayask(me) && vrec[vep[me]] && (rmask[me] & trust) == 0 -> endrecovery(me); done }
	:: d_step { mayask(me) && partner(me, 0) && all(me) -> handover(me, 0); done }
	:: d_step { mayask(me) && partner(me, 1) && all(me) -> handover(me, 1); done }
#if N == 3
	:: d_step { mayask(me) && partner(me, 2) && all(me) -> handover(me, 2); done }
#endif
	:: d_step { vprim[vep[me]] == me && !lead[me] && open(me) && leased(me) && pend[me] == 0 && qE[me] == 0 && vep[me] < MAXE ->
		ask(me, me, vset[vep[me]], vrec[vep[me]]); printf("n%d was restarted and asks for e%d\n", me, vep[me] + 1); done }

	/* its lease */
	:: d_step { phase[me] == 0 -> phase[me] = 1; alive = alive | ASKBIT(me); takeMask = takeMask & (255 - ASKBIT(me));
		lmask[me] = lmask[me] & (255 - ASKBIT(me)); printf("n%d asks for a lease\n", me); done }
	:: d_step { phase[me] == 4 ->
		alive = alive & (255 - LEASEBIT(me)); takeMask = takeMask & (255 - LEASEBIT(me)); lmask[me] = lmask[me] & (255 - LEASEBIT(me));
#ifdef COUNTED_FROM_RECEIPT
		alive = alive | LEASEBIT(me);
#else
		if :: alive & ASKBIT(me) -> alive = alive | LEASEBIT(me) :: else fi;
		if :: takeMask & ASKBIT(me) -> takeMask = takeMask | LEASEBIT(me) :: else fi;
		if :: lmask[me] & ASKBIT(me) -> lmask[me] = lmask[me] | LEASEBIT(me) :: else fi;
#endif
		under[me] = askI[me]; alive = alive & (255 - ASKBIT(me)); phase[me] = 0; askI[me] = 0; askOld[me] = false;
#ifdef UNDER_IGNORED
		under[me] = 0;
#endif
		printf("n%d has a lease with the index of e%d\n", me, under[me]); done }
	:: d_step { phase[me] -> phase[me] = 0; askI[me] = 0; askOld[me] = false; alive = alive & (255 - ASKBIT(me)); done }
	:: d_step { alive & LEASEBIT(me) -> alive = alive & (255 - LEASEBIT(me)); under[me] = 0; printf("the lease of n%d ends\n", me); done }

	:: d_step { sealed[me] < epoch && epoch < MAXE && vep[me] == epoch -> sealed[me] = epoch; printf("n%d is sealed for epoch %d and reports\n", me, epoch); done }
	:: d_step { crashes > 0 -> crashes--; lead[me] = 0; hmask[me] = 0; rmask[me] = 0; nth[me] = 0; pend[me] = 0;
		phase[me] = 0; askI[me] = 0; askOld[me] = false; under[me] = 0; alive = alive & (255 - LEASEBIT(me) - ASKBIT(me));
		printf("n%d is killed and starts again\n", me); done }
	od
}

inline forget(c, b) { trust = trust & (255 - b); y = 0; do :: y < N -> hmask[y] = hmask[y] & (255 - b); rmask[y] = rmask[y] & (255 - b); y++ :: else -> break od; y = 0 }
/* the interval a goes on as interval b */
inline becomes(a, b) {
	y = 0;
	do
	:: y < N ->
		if :: hmask[y] & a -> hmask[y] = (hmask[y] | b) & (255 - a) :: else -> hmask[y] = hmask[y] & (255 - b) fi;
		if :: rmask[y] & a -> rmask[y] = (rmask[y] | b) & (255 - a) :: else -> rmask[y] = rmask[y] & (255 - b) fi;
		y++
	:: else -> break
	od; y = 0;
	if :: trust & a -> trust = (trust | b) & (255 - a) :: else fi
}

proctype client(byte me) {
	do
	:: d_step { !asked[me] -> asked[me] = true; forget(me, REQBIT(me)); trust = trust | REQBIT(me); printf("client %d sends a request or a keep-alive\n", me); done }
	:: d_step { reply[me] && (trust & REQBIT(me)) ->
		becomes(REQBIT(me), BELBIT(me));
		asked[me] = false; reply[me] = 0;
#ifdef CLIENT_COUNTS_FROM_RECEIPT
		y = 0; do :: y < N -> hmask[y] = hmask[y] & (255 - BELBIT(me)); rmask[y] = rmask[y] & (255 - BELBIT(me)); y++ :: else -> break od; y = 0;
#endif
		printf("client %d believes that it holds\n", me);
		assert((trust & 10) != 10); done }                  /* never both */
	:: d_step { asked[me] -> asked[me] = false; reply[me] = 0; forget(me, REQBIT(me)); done }
	:: d_step { trust & REQBIT(me) -> forget(me, REQBIT(me)); done }
	:: d_step { trust & BELBIT(me) -> forget(me, BELBIT(me)); printf("client %d believes no more\n", me); done }
	od
}

inline next(prim, set, rec) {
	epoch++; vprim[epoch] = prim; vset[epoch] = set; vrec[epoch] = rec;
	printf("COMMIT e%d: primary n%d, set %d, recovery %d\n", epoch, prim, set, rec)
}
inline clear(n) { qE[n] = 0; qP[n] = 0; qS[n] = 0; qR[n] = false }
inline commit(n) { next(qP[n], qS[n], qR[n]); clear(n) }
inline refuse(n) { if :: pend[n] && open(n) -> pend[n] = 0 :: else fi; printf("the view that n%d asked for is refused or lost\n", n); clear(n) }
inline dropped() { lE = 0; lP = 0; lS = 0; lR = false; lH = 0; fence = 0 }

#ifdef NO_COMPARE_AND_SET
#define fits(e) ((e) && epoch < MAXE)
#else
#define fits(e) ((e) == epoch + 1)
#endif
#ifdef LEADER_DOES_NOT_WAIT
#define ended(n) ((lmask[n] & alive) == 0)
#elif defined(NO_LEASE_END)
#define ended(n) ((takeMask & alive) == 0)
#else
#define ended(n) ((takeMask & alive) == 0 && (lmask[n] & alive) == 0)
#endif
#define silent(n) (sealed[n] >= epoch || ended(n))
#define mute(n) (!(vset[epoch] & bit(n)) || silent(n))
#if N == 3
#define mutes (mute(0) && mute(1) && mute(2))
#else
#define mutes (mute(0) && mute(1))
#endif
#ifdef PROMOTE_OUTSIDE
#define counts(m) true
#else
#define counts(m) (vset[epoch] & bit(m))
#endif
#define free (ready && lE == 0 && epoch < MAXE)
#define mayfollow(m) (free && (m) != vprim[epoch] && counts(m) && sealed[m] >= epoch && silent(vprim[epoch]))
inline take(m) {
	lE = epoch + 1; lP = m; lS = bit(m); lR = vrec[epoch]; lH = bit(vprim[epoch]); fence = lH;
	printf("the leader asks for e%d: n%d takes over from n%d\n", lE, m, vprim[epoch])
}
#ifdef TAKEOVER_ENDS_RECOVERY
#define kept(r) false
#else
#define kept(r) (r)
#endif
#define mayrecover(m) (free && !(vset[epoch] & bit(m)) && sealed[m] >= epoch && mutes)
inline recover(m) {
	lE = epoch + 1; lP = m; lS = bit(m); lR = true; lH = vset[epoch]; fence = lH;
	printf("the leader asks for e%d: recovery at n%d\n", lE, m)
}
/* ReadIndex: begun after the question has arrived, confirmed by a majority in this term, then granted */
inline begin(n) { phase[n] = 2; askI[n] = epoch }
inline give(n) { phase[n] = 4; lmask[n] = alive & (ASKBIT(n) | LEASEBIT(n)); printf("the leader grants a lease to n%d\n", n) }
inline giveold(n) { phase[n] = 4; printf("a leader that was deposed grants a lease to n%d\n", n) }
#ifdef NO_FENCE
#define granted(n) (phase[n] == 3 && !askOld[n])
#else
#define granted(n) (phase[n] == 3 && !askOld[n] && !(fence & bit(n)) && askI[n] >= floor[n])
#endif

proctype leader() {
	do
	:: d_step { fits(qE[0]) -> commit(0); done }
	:: d_step { fits(qE[1]) -> commit(1); done }
	:: d_step { qE[0] -> refuse(0); done }
	:: d_step { qE[1] -> refuse(1); done }
	:: d_step { fits(lE) -> next(lP, lS, kept(lR));
		if :: lH & 1 -> floor[0] = epoch :: else fi; if :: lH & 2 -> floor[1] = epoch :: else fi;
#if N == 3
		if :: lH & 4 -> floor[2] = epoch :: else fi;
#endif
		dropped(); done }
	:: d_step { lE && lE <= epoch -> dropped(); done }
	:: d_step { mayfollow(0) -> take(0); done }
	:: d_step { mayfollow(1) -> take(1); done }
	:: d_step { mayrecover(0) -> recover(0); done }
	:: d_step { mayrecover(1) -> recover(1); done }
#ifdef SHORT                                          /* ReadIndex, its confirmation and the grant in one step */
	:: d_step { phase[0] == 1 && ready && !(fence & 1) -> begin(0); give(0); done }
	:: d_step { phase[1] == 1 && ready && !(fence & 2) -> begin(1); give(1); done }
#else
	:: d_step { phase[0] == 1 && ready -> begin(0); done }
	:: d_step { phase[1] == 1 && ready -> begin(1); done }
	:: d_step { phase[0] == 2 && !askOld[0] -> phase[0] = 3; done }
	:: d_step { phase[1] == 2 && !askOld[1] -> phase[1] = 3; done }
	:: d_step { granted(0) -> give(0); done }
	:: d_step { granted(1) -> give(1); done }
	:: d_step { phase[0] == 3 && askOld[0] -> giveold(0); done }
	:: d_step { phase[1] == 3 && askOld[1] -> giveold(1); done }
#endif
#if N == 3
	:: d_step { fits(qE[2]) -> commit(2); done }
	:: d_step { qE[2] -> refuse(2); done }
	:: d_step { mayfollow(2) -> take(2); done }
	:: d_step { mayrecover(2) -> recover(2); done }
	:: d_step { phase[2] == 1 && ready -> begin(2); done }
	:: d_step { phase[2] == 2 && !askOld[2] -> phase[2] = 3; done }
	:: d_step { granted(2) -> give(2); done }
	:: d_step { phase[2] == 3 && askOld[2] -> giveold(2); done }
#endif
	/* another leader: what the old one asked for may still be committed, until the new one's first command is */
	:: d_step { term < MAXT -> term++; ready = false; takeMask = alive; fence = 0;
		x = 0; do :: x < N -> lmask[x] = 0; floor[x] = 0; if :: phase[x] == 2 || phase[x] == 3 -> askOld[x] = true :: else fi; x++ :: else -> break od; x = 0;
		printf("TERM %d begins\n", term); done }
	:: d_step { !ready -> ready = true;
#ifndef OLD_DECISION_LIVES
		if :: lE -> dropped() :: else fi;
#endif
		printf("the leader of term %d has committed its first command\n", term); done }
	od
}

init { atomic {
	d_step { vset[1] = 3; vep[0] = 1; vep[1] = 1; lead[0] = 1;
#if N == 3
		vep[2] = 1;
#endif
		alive = LEASEBIT(0) | LEASEBIT(1); lmask[0] = LEASEBIT(0); lmask[1] = LEASEBIT(1); under[0] = 1; under[1] = 1 };
	run node(0); run node(1);
#if N == 3
	run node(2);
#endif
	run client(0);
#if CLIENTS == 2
	run client(1);
#endif
	 run leader()
} }

/* recovery.pml: who believes that it holds the lock: leases of clients, takeover, recovery from an old copy.
 *
 * One lock, two clients, one line of primaries: that an older primary answers nothing any more is what leader.pml shows.
 * Time is the order of events. A client counts from its own sending, a primary from something that comes later. So an interval
 * of a client is a bit of trust, which may end at any moment, and a timer of a primary is the set of the bits that were on when it
 * began: it may end only when all of those have. That is what 3/4 of the lease and rates below 1/7 give (3/4 * 8/7 < 1), for
 * every length of a lease and of a pause; the timer of a recovery is not shorter than any lease (max_lease).
 */
#ifndef MAXE
#define MAXE 4          /* views with another primary: takeovers and recoveries */
#endif
#ifndef MAXG
#define MAXG 2          /* grants; a token is the number of its grant (tokens are the subject of token.pml) */
#endif

#define REQ(c) (1 << (2 * (c)))                       /* from the first sending of what the client asks */
#define BEL(c) (2 << (2 * (c)))                       /* it believes that it holds */
#define believes(c) (trust & BEL(c))
#define ended(timer) ((timer & trust) == 0)

byte trust;
byte epoch = 1; bool recovering;
byte holder; byte tok;                                /* the table of the primary: client + 1, its token */
byte oldHolder; byte oldTok;                          /* a copy outside of the in-sync set, as it was at some time */
byte holdTimer; byte recTimer;                        /* of the primary */
byte grants;

/* A client. ask: 1 acquire is sent, 2 granted; 3 a renewal is sent, 4 one that says that the lock is trusted, 5 answered. */
byte ask[2]; byte got[2];                             /* got: the token in the answer on its way */
byte has[2];                                          /* the token that it knows */
bool fresh[2];                                        /* it has never believed in that */

#define TIMER(b) holdTimer = holdTimer & (15 - (b)); recTimer = recTimer & (15 - (b))
inline off(b) { trust = trust & (15 - (b)); TIMER(b) }
inline on(b) { off(b); trust = trust | (b) }
/* The client believes from the sending of what was answered on. */
inline believe(c) {
	off(BEL(c));
#ifdef CLIENT_COUNTS_FROM_RECEIPT
	on(BEL(c));
#else
	if
	:: trust & REQ(c) -> trust = trust | BEL(c);
		if :: holdTimer & REQ(c) -> holdTimer = holdTimer | BEL(c) :: else fi;
		if :: recTimer & REQ(c) -> recTimer = recTimer | BEL(c) :: else fi
	:: else
	fi;
#endif
	off(REQ(c)); fresh[c] = false;
	printf("client %d believes that it holds token %d\n", c, has[c]);
#ifdef REACH_BELIEF_AFTER_RECOVERY
	assert(!(wasrec && grants == MAXG && has[c] == MAXG && !recovering));   /* must fail */
#endif
#ifdef REACH_BELIEF_IN_NESTED_RECOVERY
	assert(!(recovering && nested));                  /* must fail */
#endif
	assert(!(believes(0) && believes(1)))             /* never both */
}
#ifdef REACH_BELIEF_AFTER_RECOVERY
bool wasrec;
#endif
#ifdef REACH_BELIEF_IN_NESTED_RECOVERY
bool nested;
#endif

#ifdef LOST_COMES_BACK
#define mayKeep(c) (has[c])
#else
#define mayKeep(c) (has[c] && (fresh[c] || believes(c)))
#endif
#ifdef CLIENT_COUNTS_FROM_RECEIPT
#define counts(c) true
#else
#define counts(c) (trust & REQ(c))
#endif

proctype client(byte c) {
	do
	:: d_step { ask[c] == 0 && has[c] == 0 && grants < MAXG -> ask[c] = 1; on(REQ(c)); printf("client %d sends an acquire\n", c) }
	:: d_step { ask[c] == 2 -> has[c] = got[c]; got[c] = 0; ask[c] = 0; fresh[c] = true;
		if
		:: counts(c) -> believe(c)
		:: else -> printf("client %d has the grant of token %d too late to believe in it\n", c, has[c])
		fi }
	:: d_step { ask[c] == 0 && mayKeep(c) -> ask[c] = (believes(c) -> 4 : 3); on(REQ(c)); printf("client %d asks whether token %d still counts\n", c, has[c]) }
	:: d_step { ask[c] == 5 && counts(c) && mayKeep(c) -> ask[c] = 0; believe(c) }
	/* nothing came, or too late, or it is of no use: a renewal is sent again, an acquire is given up */
	:: d_step { ask[c] -> ask[c] = 0; got[c] = 0; off(REQ(c)) }
	/* time passes */
	:: d_step { trust & REQ(c) -> off(REQ(c)) }
	:: d_step { believes(c) -> off(BEL(c));
#ifndef LOST_COMES_BACK
		has[c] = 0;
#endif
#ifndef LOST_COMES_BACK
		if :: ask[c] >= 3 -> ask[c] = 0; off(REQ(c)) :: else fi;
#endif
		printf("client %d believes no more\n", c) }
	/* it gives up what it holds, or was told that it is gone */
	:: d_step { has[c] && ask[c] == 0 -> off(BEL(c)); if :: holder == c + 1 && tok == has[c] -> holder = 0; tok = 0 :: else fi;
		has[c] = 0; fresh[c] = false; printf("client %d gives back\n", c) }
	od
}

#ifdef GRANTS_IN_RECOVERY
#define mayGrant true
#else
#define mayGrant (!recovering)
#endif
inline grant(c) {
	grants++; holder = c + 1; tok = grants; holdTimer = trust; ask[c] = 2; got[c] = tok;
	printf("client %d is granted token %d\n", c, tok)
}
inline keep(c) {
	holdTimer = trust; ask[c] = 5;
	printf("client %d is told that token %d counts\n", c, tok)
}
#ifdef PROOF_IN_RECOVERY
#define answered(c) (ask[c] == 3 || ask[c] == 4)
#else
#define answered(c) (ask[c] == 4 || ask[c] == 3 && !recovering)   /* in a recovery none that could begin a trust */
#endif
#define asksFor(c) (answered(c) && holder == (c) + 1 && tok == has[c])

inline takeOver() {
	epoch++;
#ifdef LEASES_NOT_RESTARTED
	holdTimer = 0;
#else
	holdTimer = (holder -> trust : 0);
#endif
#ifdef REACH_BELIEF_IN_NESTED_RECOVERY
	nested = recovering;
#endif
#ifdef TAKEOVER_ENDS_RECOVERY
	recovering = false;
#endif
#ifdef RECOVERY_NOT_RESTARTED
	recTimer = 0;
#else
	recTimer = (recovering -> trust : 0);
#endif
	printf("EPOCH %d: takeover, client %d holds token %d (1, 2; 0 nobody)\n", epoch, holder, tok)
}
/* x: whether what is lost stays somewhere as an old copy */
inline recover() {
	epoch++; recovering = true;
#ifdef REACH_BELIEF_AFTER_RECOVERY
	wasrec = true;
#endif
	if
	:: x -> y = oldHolder; oldHolder = holder; holder = y; y = oldTok; oldTok = tok; tok = y; y = 0
	:: else -> holder = oldHolder; tok = oldTok
	fi;
	x = 0;
	holdTimer = (holder -> trust : 0);
#ifdef RECOVERY_DOES_NOT_WAIT
	recTimer = 0;
#else
	recTimer = trust;
#endif
	printf("EPOCH %d: recovery from an old copy, client %d holds token %d (1, 2; 0 nobody)\n", epoch, holder, tok)
}
byte x; byte y;

proctype primary() {
	do
	:: d_step { ask[0] == 1 && holder == 0 && mayGrant && grants < MAXG -> grant(0) }
	:: d_step { ask[1] == 1 && holder == 0 && mayGrant && grants < MAXG -> grant(1) }
	:: d_step { asksFor(0) -> keep(0) }
	:: d_step { asksFor(1) -> keep(1) }
#ifdef ENDS_HOLD_EARLY
	:: d_step { holder -> holder = 0; tok = 0; holdTimer = 0; printf("the hold ends\n") }
#else
	:: d_step { holder && ended(holdTimer) -> holder = 0; tok = 0; holdTimer = 0; printf("the hold ends\n") }
#endif
	:: d_step { recovering && ended(recTimer) -> recovering = false; recTimer = 0; printf("the recovery is over\n") }
	:: d_step { oldTok != tok || oldHolder != holder -> oldHolder = holder; oldTok = tok; printf("a copy is made\n") }
	:: d_step { epoch < MAXE -> takeOver() }
	:: d_step { epoch < MAXE -> recover() }
	:: d_step { epoch < MAXE -> x = 1; recover() }
	od
}

init { atomic { run client(0); run client(1); run primary() } }

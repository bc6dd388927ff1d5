/* chain.pml: one bucket on three nodes: views, in-sync set, confirmations, hand-over, takeover, recovery, returning nodes, tokens.
 *
 * No time here: what leader.pml shows is taken for granted. A primary acts until the leader asks for a view without it, or it is
 * sealed; from then on it is held, and acts again only once it has applied that view. A message is taken or lost; one that is
 * late is like one that was taken when it was sent, since nobody takes it after a newer view or a seal.
 * A change is a number. canc[c] is the set of the changes before it and itself: that stands for its chained hash.
 * Each action is one atomic step and prints one line when a trail is replayed.
 */
#ifndef MAXE
#define MAXE 4          /* epochs */
#endif
#ifndef MAXC
#define MAXC 2          /* changes */
#endif
#ifndef CRASHES
#define CRASHES 1       /* restarts with everything that was on the disk */
#endif
#ifndef WIPES
#define WIPES 1         /* a disk lost, or put back from an old copy */
#endif

#ifdef ACKS_ALL
#define MAXSET 7        /* as a set of bits: all three */
#else
#define MAXSET 6        /* acks first: at most two */
#endif
#define N 3
#define bit(n) (1 << (n))
#define anc(a, b) ((canc[b] >> (a)) & 1)              /* history b goes through change a */
#define incof(p, n) (((p) >> (2 * (n))) & 3)
#define isprim(e, n) (vprim[e] == (n) && incof(vinc[e], n) == inc[n])
#define member(e, n) ((vset[e] & bit(n)) && incof(vinc[e], n) == inc[n])
#define open(n) (vep[n] > sealed[n] && !stop[n])
#define leased(n) (!(held & bit(n)) && vep[n] >= under[n])
#define acting(n) (lead[n] && open(n) && leased(n))
#define rank(c) (cep[c] * 16 + cseq[c])               /* newest by (epoch, seq) */

/* The log of the control plane: the views in their order. */
byte epoch = 1;
byte vprim[MAXE + 1]; byte vset[MAXE + 1]; byte vinc[MAXE + 1]; bool vrec[MAXE + 1];

/* All changes that were ever proposed; 0 is the beginning. */
byte nc; byte canc[MAXC + 1]; byte cep[MAXC + 1]; byte cseq[MAXC + 1]; byte cterm[MAXC + 1]; byte ccnt[MAXC + 1];

/* A copy. On its disk: last, vep, sealed, inc. */
byte last[N]; byte vep[N]; byte sealed[N]; byte inc[N];
byte ver[N]; bool mat[N]; byte conf[N]; byte deliv[N]; bool stop[N]; bool shown[N];
byte lead[N]; byte fl[N]; byte has[N * N]; byte pk[N]; byte pend[N];   /* pend: the set that was asked for, 0 if none */
bool recov[N];                                        /* the primary was promoted in a recovery */
byte under[N];                                        /* it acts only once this view is applied */

/* Views that are asked for; the leader's is the last. A request may be lost, or committed late. */
byte qE[N + 1]; byte qP[N + 1]; byte qS[N + 1]; byte qI[N + 1]; bool qR[N + 1];
bool qX;   /* the leader asks for a recovery */
byte held;                                            /* nodes that get no lease while the leader's is on its way */

byte crashes = CRASHES; byte wipes = WIPES;

/* What the checkers know. */
byte ans; byte ansTok; byte ansE; byte by[MAXE + 1]; byte lives;

/* used within one step only */
#define done x = 0; y = 0; z = 0; c = 0; k = 0
byte x; byte y; byte z; byte c; byte k;

inline highest(mask, to) { to = MAXC; do :: to > 0 && !(((mask) >> to) & 1) -> to-- :: else -> break od }

/* The claim: every member that the new view counts has what was answered. */
inline claim(e) {
	k = 0;
	do
	:: k < N ->
		if
		:: member(e, k) -> assert(anc(ans, last[k]))
		:: else
		fi;
		k++
	:: else -> break
	od; k = 0
}

inline answered(n, ch) {
#ifdef REACH_ANSWER_AFTER_TAKEOVER
	assert(!(n == 1 && lead[n] > 1 && !recov[n] && sealed[0] == 0 && ans));   /* must fail */
#endif
#ifdef REACH_ANSWER_AFTER_HANDOVER
	assert(!(n == 1 && lead[n] > 1 && !recov[n] && sealed[0] && under[0] == 0 && held == 0 && ans));   /* must fail */
#endif
#ifdef REACH_ANSWER_AFTER_RECOVERY
	assert(!(recov[n] && ans));                       /* must fail: something was answered before */
#endif
#ifdef REACH_ANSWER_WITH_RETURNED
	assert(!(n == 0 && vset[vep[n]] == 5 && inc[2] && incof(vinc[vep[n]], 2) == inc[2]));   /* must fail */
#endif
	assert(vep[n] >= ansE);                           /* none in an epoch that is over */
	assert(by[vep[n]] == 0 || by[vep[n]] == 1 + n + 3 * ((lives >> (2 * n)) & 3));  /* one life for each epoch */
	assert(anc(ans, ch));                             /* nothing that was answered is missing */
	if
	:: ch != ans -> assert(cterm[ch] * 8 + ccnt[ch] > ansTok); ansTok = cterm[ch] * 8 + ccnt[ch]
	:: else
	fi;
	by[vep[n]] = 1 + n + 3 * ((lives >> (2 * n)) & 3); ansE = vep[n]; ans = ch
}

inline install(n) {
	z = lead[n] != 0 && vep[n] > sealed[n] && isprim(vep[n] + 1, n);    /* its life goes on */
	vep[n]++; pend[n] = 0; mat[n] = false; ver[n] = 0; if :: vep[n] >= under[n] -> under[n] = 0 :: else fi; shown[n] = false;
	if
	:: z ->
		y = 0;
		do
		:: y < N -> if :: !(vset[vep[n]] & bit(y)) -> has[n * N + y] = 0 :: else fi; y++
		:: else -> break
		od;
		pk[n] = vinc[vep[n]];
		if :: !vrec[vep[n]] -> recov[n] = false :: else fi;
		printf("n%d goes on as the primary in epoch %d\n", n, vep[n])
	:: !z && isprim(vep[n], n) && !stop[n] ->
		lead[n] = vep[n]; fl[n] = last[n]; deliv[n] = last[n]; pk[n] = vinc[vep[n]]; recov[n] = vrec[vep[n]];
		has[n * N] = 0; has[n * N + 1] = 0; has[n * N + 2] = 0;
		printf("n%d takes over in epoch %d with history up to change %d\n", n, vep[n], last[n])
	:: else ->
		lead[n] = 0; fl[n] = 0; pk[n] = 0; conf[n] = 0; recov[n] = false;
		has[n * N] = 0; has[n * N + 1] = 0; has[n * N + 2] = 0;
		printf("n%d learns view e%d (primary n%d, in-sync set %d)\n", n, vep[n], vprim[vep[n]], vset[vep[n]]);
		if
		:: stop[n] && !member(vep[n], n) && inc[n] < 3 ->
			inc[n]++; last[n] = 0; conf[n] = 0; deliv[n] = 0; stop[n] = false;
			printf("n%d is out of the set, throws its copy away and is n%d.%d\n", n, n, inc[n])
		:: else
		fi
	fi;
	y = 0
}

inline restart(n) {
	lead[n] = 0; fl[n] = 0; pk[n] = 0; pend[n] = 0; mat[n] = false; ver[n] = 0; recov[n] = false;
	has[n * N] = 0; has[n * N + 1] = 0; has[n * N + 2] = 0;
	shown[n] = true; conf[n] = 0
}

/* Takes over what the primary p has sent. */
inline adopt(n, p) {
	highest(canc[last[p]] & canc[last[n]], x);
	if
	:: x == last[n] -> last[n] = last[p]; ver[n] = last[p]; mat[n] = true;
		printf("n%d has the history of n%d up to change %d in epoch %d\n", n, p, ver[n], vep[n])
	:: x == last[p] && x != last[n] -> if :: x > ver[n] -> ver[n] = x :: else fi; mat[n] = true;
		printf("n%d has the history of n%d up to change %d in epoch %d\n", n, p, ver[n], vep[n])
	:: x != last[p] && x != last[n] && deliv[n] <= x -> last[n] = last[p]; ver[n] = last[p]; mat[n] = true;
		printf("n%d replaces what it had after change %d by what n%d has, up to change %d\n", n, x, p, last[p])
	:: else ->                                        /* its table has what the primary's has not */
		if
		:: member(vep[n], n) || shown[n] -> stop[n] = true;
			printf("n%d has another history than n%d and asks to be dropped\n", n, p)
		:: else -> last[n] = last[p]; deliv[n] = 0; ver[n] = last[p]; mat[n] = true;
			printf("n%d takes a snapshot of n%d up to change %d\n", n, p, last[p])
		fi
	fi
}

inline propose(n) {
	nc++; cep[nc] = vep[n]; cseq[nc] = cseq[last[n]] + 1; canc[nc] = canc[last[n]] | bit(nc);
	if
	:: last[n] == fl[n] && cep[last[n]] < lead[n] ->     /* the first change of this life: a new term */
#ifdef TOKEN_WITHOUT_EPOCH
		cterm[nc] = cterm[last[n]] + 2;
#else
		cterm[nc] = 4 * lead[n] - 2;                         /* token.pml */
#endif
		ccnt[nc] = 1
	:: else -> cterm[nc] = cterm[last[n]]; ccnt[nc] = ccnt[last[n]] + 1
	fi;
	last[n] = nc; deliv[n] = nc;
	printf("n%d proposes change %d in epoch %d, token %d.%d\n", n, nc, vep[n], cterm[nc], ccnt[nc]);
#ifdef ANSWER_BEFORE_CONFIRMATION
	printf("n%d ANSWERS change %d at once\n", n, nc);
	answered(n, nc)
#endif
}

/* What every member of the set is known to have. */
inline reached(n, set, to) {
	y = 0; to = canc[last[n]];
	do
	:: y < N -> if :: y != n && (set & bit(y)) -> to = to & canc[has[n * N + y]] :: else fi; y++
	:: else -> break
	od
}

inline ask(n, prim, set, rec) {
	qE[n] = vep[n] + 1; qP[n] = prim; qS[n] = set; qR[n] = rec; qI[n] = pk[n]; pend[n] = set
}

/* What the primary n hears of m. */
#define newer(n, m) (lead[n] && open(n) && (m) != n && vep[m] == vep[n] && mat[m] && open(m) && \
	(incof(pk[n], m) == inc[m] -> ver[m] > has[n * N + m] : !(vset[vep[n]] & bit(m))))
inline hear(n, m) {
	has[n * N + m] = ver[m]; pk[n] = (pk[n] & (63 - 3 * (1 << (2 * m)))) | (inc[m] << (2 * m)); shown[m] = true;
	printf("n%d.%d confirms change %d in epoch %d\n", m, inc[m], ver[m], vep[n])
}

inline confirm(n) {
	reached(n, vset[vep[n]], c);
	if :: pend[n] -> z = c; reached(n, pend[n], c); c = c & z :: else fi;
	highest(c, x);
	if
	:: x > conf[n] && cep[x] >= lead[n] -> conf[n] = x;
		printf("n%d answers change %d in epoch %d\n", n, x, vep[n]);
#ifndef ANSWER_BEFORE_CONFIRMATION
		answered(n, x)
#endif
	:: else
	fi
}

/* Another set: every newcomer has all that may have been answered. */
#define mayask(n) (acting(n) && pend[n] == 0 && vep[n] < MAXE && last[n] != fl[n])
#define wishes(n, s) (mayask(n) && ((s) & bit(n)) && ((s) != vset[vep[n]] || vrec[vep[n]]) && (s) <= MAXSET)
inline wish(n, s) {
	y = 0; z = true; x = (conf[n] > fl[n] -> conf[n] : fl[n]);
#ifndef PROMOTE_UNSYNCED
	do
	:: y < N -> if :: (s & bit(y)) && y != n && !(vset[vep[n]] & bit(y)) && !anc(x, has[n * N + y]) -> z = false :: else fi; y++
	:: else -> break
	od;
#endif
	if
	:: z -> ask(n, n, s, false); printf("n%d asks for e%d with in-sync set %d\n", n, vep[n] + 1, s)
	:: else
	fi
}

#define yields(n, m) (mayask(n) && (m) != n && !vrec[vep[n]] && (vset[vep[n]] & bit(m)) && has[n * N + m] == last[n])
inline yield(n, m) {
	ask(n, m, vset[vep[n]], false);
	sealed[n] = vep[n];
	printf("n%d hands over: it is sealed for epoch %d and asks for e%d with primary n%d\n", n, vep[n], vep[n] + 1, m);
}

#define follows(n, m) (open(n) && !lead[n] && (m) != n && lead[m] && vep[m] == vep[n] && open(m) && (!mat[n] || ver[n] < last[m]))

inline kill(n) {
	crashes--; lives = lives ^ bit(2 * n); restart(n); deliv[n] = 0;
	printf("n%d is killed and starts again with its disk\n", n)
}

/* old: its disk is put back from a copy that lacks the last change; else it is empty */
inline lose(n, old) {
	wipes--; restart(n); deliv[n] = 0; lives = lives ^ bit(2 * n); sealed[n] = 0; stop[n] = false; shown[n] = false;
	if
	:: !old -> last[n] = 0; printf("n%d loses its disk and starts again\n", n)
	:: else -> highest(canc[last[n]] & (255 - bit(last[n])), x); last[n] = x;
		printf("n%d starts again with an old copy of its disk, up to change %d\n", n, x)
	fi;
#ifdef INCARNATION_IGNORED
	if :: old -> inc[n]++ :: else fi;
#elif defined(OLD_DISK_COUNTS)
	if :: !old -> inc[n]++ :: else fi;
#else
	inc[n]++;
#endif
	vep[n] = epoch;
	printf("it is n%d.%d now, and knows e%d\n", n, inc[n], epoch)
}

proctype node(byte me) {
	do
	:: d_step { vep[me] < epoch -> install(me); done }          /* one by one, in the order of the log */

	/* the primary */
	:: d_step { acting(me) && nc < MAXC && (!vrec[vep[me]] || last[me] == fl[me]) -> propose(me); done }
	:: d_step { newer(me, 0) -> hear(me, 0); done }
	:: d_step { newer(me, 1) -> hear(me, 1); done }
	:: d_step { newer(me, 2) -> hear(me, 2); done }
	:: d_step { acting(me) && conf[me] != last[me] -> confirm(me); done }

	/* what it asks of the control plane, one thing at a time */
	:: d_step { isprim(vep[me], me) && lead[me] == 0 && open(me) && leased(me) && pend[me] == 0 && qE[me] == 0 && vep[me] < MAXE ->
		pk[me] = vinc[vep[me]]; ask(me, me, vset[vep[me]], vrec[vep[me]]); pk[me] = 0;
		printf("n%d was restarted and asks for e%d, the same again\n", me, vep[me] + 1); done }
	:: d_step { wishes(me, 1) -> wish(me, 1); done }
	:: d_step { wishes(me, 2) -> wish(me, 2); done }
	:: d_step { wishes(me, 3) -> wish(me, 3); done }
	:: d_step { wishes(me, 4) -> wish(me, 4); done }
	:: d_step { wishes(me, 5) -> wish(me, 5); done }
	:: d_step { wishes(me, 6) -> wish(me, 6); done }
	:: d_step { wishes(me, 7) -> wish(me, 7); done }
	:: d_step { yields(me, 0) -> yield(me, 0); done }
	:: d_step { yields(me, 1) -> yield(me, 1); done }
	:: d_step { yields(me, 2) -> yield(me, 2); done }

	/* a follower */
	:: d_step { follows(me, 0) -> adopt(me, 0); done }
	:: d_step { follows(me, 1) -> adopt(me, 1); done }
	:: d_step { follows(me, 2) -> adopt(me, 2); done }

	/* sealing, by order of the leader; what it reports then stays as it is */
	:: d_step { sealed[me] < epoch && epoch < MAXE -> sealed[me] = epoch;
		printf("n%d.%d is sealed for epoch %d and reports history up to change %d\n", me, inc[me], epoch, last[me]); done }

	/* faults */
	:: d_step { crashes > 0 -> kill(me); done }
	:: d_step { wipes > 0 && inc[me] < 3 -> lose(me, false); done }
	:: d_step { wipes > 0 && inc[me] < 3 && last[me] != 0 -> lose(me, true); done }
	od
}

inline clear(i) { qE[i] = 0; qP[i] = 0; qS[i] = 0; qR[i] = false; qI[i] = 0 }

inline commit(i) {
	epoch++; vprim[epoch] = qP[i]; vset[epoch] = qS[i]; vrec[epoch] = qR[i]; vinc[epoch] = qI[i];
	printf("COMMIT e%d: primary n%d, in-sync set %d, recovery %d\n", epoch, qP[i], qS[i], qR[i]);
	if
	:: vrec[epoch] && i == N && qX -> ans = last[qP[i]]       /* the end may be lost: the view says so */
	:: else
	fi;
	if
	:: i == N -> y = 0; do :: y < N -> if :: held & bit(y) -> under[y] = epoch :: else fi; y++ :: else -> break od; y = 0; held = 0; qX = false
	:: else
	fi;
	clear(i);
	claim(epoch)
}

inline refuse(i) {
	printf("the view e%d that %d asked for is refused or lost\n", qE[i], i);
	if
	:: i == N -> held = 0; qX = false
	:: i < N -> if :: pend[i] && sealed[i] < vep[i] -> pend[i] = 0 :: else fi
	fi;
	clear(i)
}

#define told(n) (sealed[n] >= epoch && !stop[n] && inc[n] == incof(vinc[epoch], n))
/* A takeover uses the reports of the set s: all of sealed members of the in-sync set; the newest is the next primary. */
#ifdef PROMOTE_OUTSIDE
#define counts(n) (sealed[n] >= epoch)
#else
#define counts(n) (told(n) && (vset[epoch] & bit(n)))
#endif
#define canfollow(s) (qE[N] == 0 && epoch < MAXE && \
	(!((s) & 1) || counts(0)) && (!((s) & 2) || counts(1)) && (!((s) & 4) || counts(2)))
inline newest(s) {
	y = 0; x = N;
	do
	:: y < N ->
		if :: !(s & bit(y)) :: (s & bit(y)) -> if :: x == N -> x = y :: x < N && rank(last[y]) > rank(last[x]) -> x = y :: else fi fi;
		y++
	:: else -> break
	od
}
inline takeover(s) {
	newest(s);
	qE[N] = epoch + 1; qP[N] = x; qR[N] = vrec[epoch]; held = bit(vprim[epoch]);
	qI[N] = (vinc[epoch] & (63 - 3 * (1 << (2 * x)))) | (inc[x] << (2 * x));
#ifdef ACKS_ALL
	qS[N] = s;
#else
	qS[N] = bit(x);
#endif
	printf("the leader asks for e%d: n%d takes over from n%d\n", epoch + 1, x, vprim[epoch])
}

/* Recovery: nobody of the set can act, and none of it will report; the newest of the copies that did goes on. */
#define dead(n) (!(vset[epoch] & bit(n)) || !told(n))
#define stray(n) (sealed[n] >= epoch && !stop[n] && !((vset[epoch] & bit(n)) && told(n)))
#define canrecover(s) (qE[N] == 0 && epoch < MAXE && dead(0) && dead(1) && dead(2) && \
	(!((s) & 1) || stray(0)) && (!((s) & 2) || stray(1)) && (!((s) & 4) || stray(2)))
inline recover(s) {
	newest(s);
	qE[N] = epoch + 1; qP[N] = x; qS[N] = bit(x); qR[N] = true; held = vset[epoch]; qX = true;
	qI[N] = (vinc[epoch] & (63 - 3 * (1 << (2 * x)))) | (inc[x] << (2 * x));
	printf("the leader asks for e%d: recovery, n%d.%d goes on with change %d\n", epoch + 1, x, inc[x], last[x])
}

/* compare-and-set: what follows the newest view is committed, all else is refused */
#ifdef NO_COMPARE_AND_SET
#define follows_on(i) (qE[i] != 0 && epoch < MAXE)
#else
#define follows_on(i) (qE[i] == epoch + 1)
#endif

proctype leader() {
	do
	:: d_step { follows_on(0) -> commit(0); done }
	:: d_step { follows_on(1) -> commit(1); done }
	:: d_step { follows_on(2) -> commit(2); done }
	:: d_step { follows_on(N) -> commit(N); done }
	:: d_step { qE[0] -> refuse(0); done }
	:: d_step { qE[1] -> refuse(1); done }
	:: d_step { qE[2] -> refuse(2); done }
	:: d_step { qE[N] -> refuse(N); done }
	:: d_step { canfollow(1) -> takeover(1); done }
	:: d_step { canfollow(2) -> takeover(2); done }
	:: d_step { canfollow(4) -> takeover(4); done }
	:: d_step { canfollow(3) -> takeover(3); done }
	:: d_step { canfollow(5) -> takeover(5); done }
	:: d_step { canfollow(6) -> takeover(6); done }
	:: d_step { canfollow(7) -> takeover(7); done }
	:: d_step { canrecover(1) -> recover(1); done }
	:: d_step { canrecover(2) -> recover(2); done }
	:: d_step { canrecover(4) -> recover(4); done }
	:: d_step { canrecover(3) -> recover(3); done }
	:: d_step { canrecover(5) -> recover(5); done }
	:: d_step { canrecover(6) -> recover(6); done }
	od
}

init { atomic {
	d_step {
		vset[1] = 3; canc[0] = 1; lead[0] = 1; pk[0] = 0; vep[0] = 1; vep[1] = 1; vep[2] = 1
	};
	run node(0); run node(1); run node(2); run leader()
} }

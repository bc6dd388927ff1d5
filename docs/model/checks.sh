# What run.sh checks. verify MODEL BOUNDS: all of it is seen, nothing is wrong. refute MODEL NAME BOUNDS: a counterexample is found.
# README.md says what the names mean.

if [ "$what" = all ] || [ "$what" = check ]; then
	verify chain "-DMAXE=2 -DMAXC=2 -DCRASHES=0 -DWIPES=0"
	verify chain "-DMAXE=3 -DMAXC=1 -DCRASHES=0 -DWIPES=0"
	verify chain "-DMAXE=2 -DMAXC=1 -DCRASHES=1 -DWIPES=1"
	verify chain "-DACKS_ALL -DMAXE=2 -DMAXC=2 -DCRASHES=0 -DWIPES=0"
	verify leader "-DMAXE=3 -DMAXT=2"
	verify recovery "-DMAXE=3 -DMAXG=2"
	verify recovery "-DMAXE=5 -DMAXG=4"
	verify token "-DMAXE=8 -DFULL=2 -DCOPIES=2"
	verify token "-DMAXE=10 -DFULL=2 -DCOPIES=2"
fi

if [ "$what" = all ] || [ "$what" = mutants ]; then
	bounds="-DMAXE=2 -DMAXC=2 -DCRASHES=0 -DWIPES=0"
	for name in ANSWER_BEFORE_CONFIRMATION PROMOTE_OUTSIDE PROMOTE_UNSYNCED TOKEN_WITHOUT_EPOCH \
		REACH_ANSWER_AFTER_TAKEOVER REACH_ANSWER_AFTER_HANDOVER REACH_ANSWER_AFTER_RECOVERY; do
		refute chain $name "$bounds"
	done
	bounds="-DMAXE=2 -DMAXC=1 -DCRASHES=1 -DWIPES=1"
	for name in INCARNATION_IGNORED OLD_DISK_COUNTS REACH_ANSWER_WITH_RETURNED; do
		refute chain $name "$bounds"
	done
	refute chain NO_COMPARE_AND_SET "-DMAXE=3 -DMAXC=2 -DCRASHES=0 -DWIPES=0"

	for name in NO_FENCE NO_FLOOR LEADER_DOES_NOT_WAIT NO_LEASE_END OLD_DECISION_LIVES NO_LEASE_CHECK COUNTED_FROM_RECEIPT \
		ACTS_BEFORE_INDEX READ_BEFORE_FIRST_COMMAND GRANTS_WITHOUT_MAJORITY SKIP_SEAL NO_COMPARE_AND_SET \
		REACH_BACK_AND_FORTH REACH_TAKEOVER_IN_NEW_TERM; do
		refute leader $name "-DMAXE=3 -DMAXT=2"
	done

	for name in RECOVERY_DOES_NOT_WAIT TAKEOVER_ENDS_RECOVERY RECOVERY_NOT_RESTARTED GRANTS_IN_RECOVERY PROOF_IN_RECOVERY LOST_COMES_BACK \
		CLIENT_COUNTS_FROM_RECEIPT LEASES_NOT_RESTARTED ENDS_HOLD_EARLY REACH_BELIEF_AFTER_RECOVERY REACH_BELIEF_IN_NESTED_RECOVERY; do
		refute recovery $name "-DMAXE=3 -DMAXG=2"
	done

	for name in TOKEN_WITHOUT_EPOCH TAKEOVER_ADDS_TWO COUNTED_FROM_THE_COPY THREE_PER_EPOCH REACH_THREE_NESTED_RECOVERIES; do
		refute token $name "-DMAXE=8 -DFULL=2 -DCOPIES=2"
	done
	refute token FORMER_RULE "-DMAXE=8 -DFULL=0 -DCOPIES=2 -DALL_CONFIRMED"
fi

# Not part of make model: larger bounds, which take long. They may stay unfinished; a violation fails.
if [ "$what" = more ]; then
	verify chain "-DMAXE=3 -DMAXC=2 -DCRASHES=0 -DWIPES=0" MAY_STOP
	verify chain "-DMAXE=3 -DMAXC=1 -DCRASHES=0 -DWIPES=1" MAY_STOP
	verify leader "-DMAXE=3 -DMAXT=3" MAY_STOP
	verify leader "-DMAXE=4 -DMAXT=2" MAY_STOP
fi

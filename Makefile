# Short names for `python3 -m deploy <command>`, which does the work.
.PHONY: demo test up down check bench
demo test up down check bench:
	python3 -m deploy $@

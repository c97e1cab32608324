# Everything runs in .venv at the root, made on first use. `make` alone lists the targets.
PYTHON ?= python3.11
ANALYST := skills/accuracy/rl-consistency-dump-analysis
COLLECTOR := skills/accuracy/rl-prefill-consistency-dump
PY := .venv/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
SAMPLE := tests/samples/qwen2-hf-vllm-clean
# The tests start commands as processes, some hundreds: without bytecode each would be compiled anew.
unexport PYTHONDONTWRITEBYTECODE
# Two processes; the tests of a file stay together, so that what its fixtures make is made once.
TWO := -n 2 --dist loadfile

.PHONY: help demo test check smoke interpreters loop vllm-rounds bench sync clean
help:
	@echo "make demo          analyse a sample pair and say where the two sides part"
	@echo "make test          the tests (torch is their reference for tensor files and rounding)"
	@echo "make check         what CI runs on Python 3.11: ruff, mypy, tests"
	@echo "make smoke         every command on the samples"
	@echo "make interpreters  the tests on the other Python versions found on this machine"
	@echo "make loop          fault sets dumped, analysed, overridden and judged until nothing is open (LOOP_ARGS='--first 0 --sets 50')"
	@echo "make vllm-rounds   rounds of a real engine, made into a sample again (VLLM_PYTHON=..., see tests/engines/README.md)"
	@echo "make bench         speed and memory on generated pairs, beside torch and msprobe (BENCH_ARGS=--quick: answers only)"
	@echo "make sync          copy what both skills share from the analyst to the collector"

.venv/made:
	@command -v "$(PYTHON)" >/dev/null && "$(PYTHON)" --version >/dev/null 2>&1 || { echo "Cannot make .venv: $(PYTHON) was not found or does not start. Install Python 3.11, or say make PYTHON=/path/to/python3.11." >&2; exit 2; }
	@"$(PYTHON)" -m venv .venv
	@touch $@

.venv/demo: .venv/made $(ANALYST)/requirements.txt
	@$(PIP) -r $(ANALYST)/requirements.txt
	@touch $@

# msprobe imports nothing, itself included, from a path with other characters (FILE_VALID_PATTERN in msprobe 26.2.0).
.venv/test: .venv/made pyproject.toml constraints.txt
	@case "$(CURDIR)" in *[!a-zA-Z0-9_.:/-]*) echo "Cannot run the tests in $(CURDIR): msprobe, which dumps their toys, does not start under a path of other characters than letters, digits and _ . : / -. Clone to another folder; make demo, make smoke and the skills run here." >&2; exit 2;; esac
	@$(PIP) -c constraints.txt torch
	@$(PIP) -c constraints.txt '.[test]'
	@touch $@

# msprobe 26.2.0 cannot write its csv with pandas 3.
.venv/bench: .venv/test constraints.txt
	@$(PIP) -c constraints.txt torch mindstudio-probe==26.2.0 'pandas<3'
	@touch $@

demo: .venv/demo
	@$(PY) $(ANALYST)/scripts/diagnose.py --train $(SAMPLE)/train --infer $(SAMPLE)/infer --output-dir .demo

test: .venv/test
	@$(PY) -m pytest $(TWO)

check: .venv/test
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@cd $(ANALYST)/scripts && "$(CURDIR)/$(PY)" -m mypy --config-file "$(CURDIR)/pyproject.toml" .
	@cd $(COLLECTOR)/scripts && "$(CURDIR)/$(PY)" -m mypy --config-file "$(CURDIR)/pyproject.toml" .
	@$(PY) -m mypy --strict tests/smoke.py tests/interpreters.py
	@cd tests && "$(CURDIR)/$(PY)" -m mypy --config-file "$(CURDIR)/pyproject.toml" toys
	@MYPYPATH=tests:$(ANALYST)/scripts $(PY) -m mypy benchmarks
	@$(PY) -m pytest $(TWO)
	@ATEN_CPU_CAPABILITY=default $(PY) -m pytest $(TWO) --ends tests/replay

smoke: .venv/demo
	@$(PY) tests/smoke.py

interpreters: .venv/made
	@$(PY) tests/interpreters.py

loop: .venv/test
	@PYTHONPATH=tests $(PY) -m loop $(LOOP_ARGS)

vllm-rounds: .venv/test
	@command -v "$(VLLM_PYTHON)" >/dev/null || { echo "Cannot make the rounds: VLLM_PYTHON is '$(VLLM_PYTHON)', no Python. Make the environment of tests/engines/README.md and hand its python." >&2; exit 2; }
	@work=$$(mktemp -d) && $(PY) tests/engines/vllm_rounds.py --python "$(VLLM_PYTHON)" --work "$$work/rounds" --sample tests/samples/qwen2-hf-vllm-rounds

bench: .venv/bench
	@$(PY) benchmarks/bench.py $(BENCH_ARGS)

sync:
	@rm -rf $(COLLECTOR)/scripts/msprobe_files
	@mkdir -p $(COLLECTOR)/scripts/msprobe_files $(COLLECTOR)/references
	@cp $(ANALYST)/scripts/msprobe_files/*.py $(COLLECTOR)/scripts/msprobe_files/
	@cp $(ANALYST)/references/task_card.json $(COLLECTOR)/references/task_card.json
	@mkdir -p $(COLLECTOR)/references/templates
	@cp $(ANALYST)/references/templates/stub_instruction.example.json $(COLLECTOR)/references/templates/

clean:
	@rm -rf .venv .venv-* .demo .smoke build *.egg-info .mypy_cache .ruff_cache .hypothesis

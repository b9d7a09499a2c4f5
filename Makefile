# These targets install into .venv, .venv-ray and .venv-generate, and write inside this checkout, ~/.cache/cleanset and,
# for judges, ~/.local/state/cleanset. Plain `dvc` also writes a site cache (/var/tmp/dvc), which is led into the checkout.
PYTHON ?= python3
VENV := .venv
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export CLEANSET_REAL
export DVC_SITE_CACHE_DIR := $(CURDIR)/.dvc/tmp/site

.DEFAULT_GOAL := help
.PHONY: help setup repro published from-scores robustness training remote test tests test-fast test-ray test-generate lint docs real edition review judge check-gpu bench lock

help:  ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | awk -F'\t' '{printf "make %-14s%s\n", $$1, $$2}'

setup: $(VENV)/.ready  ## create .venv with the locked requirements

# two of pip at a time, since it downloads and unpacks on one core; in three parts, which end nearly together. It would
# also compile on one core only, also what few or none import, and files that no Python compiles
$(VENV)/.ready: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV)
	for part in 0 1 2; do awk "/^[^ ]/ {n++} n % 3 == $$part" requirements.txt > $(VENV)/part-$$part.txt; done
	printf '%s\n' 0 1 2 | xargs -I{} -P 2 pip install --quiet --no-cache-dir --disable-pip-version-check --no-compile \
	--require-hashes --no-deps --requirement $(VENV)/part-{}.txt
	pip install --quiet --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation --editable .
	-@python -m compileall -qq -j 0 -x '/(tests?|testing|_inductor|moto|mypyc?|lexers)/' $(VENV)/lib
	@touch $@

repro: setup  ## build the sample edition and show its metrics
	cleanset doctor --quick
	dvc repro
	dvc metrics show
	@echo 'The report is report/index.html'

EDITION ?= .
# the stages that run a model, and those that make what the models see
SCORING := score score_crops
SCORED := preprocess crops
from-scores: setup  ## [EDITION=imagenet]: rebuild an edition from your own archives and pulled scores, without a GPU
	cd "$(EDITION)" && dvc pull $(SCORING) && dvc repro $(SCORED)
	@cd "$(EDITION)" && dvc status --quiet $(SCORING) || { dvc status $(SCORING); echo 'error: the pulled scores are of' \
	'other images, params or source code; check out their commit, or compute them again by dvc repro' >&2; exit 1; }
	cd "$(EDITION)" && dvc repro

# the sample is built where a study lacks what it needs of it; other editions are pulled or built before
UNBUILT = $(if $(filter .,$(EDITION)),$(if $(wildcard $(1)),,repro))
# memory once taken is kept, which makes a network on the CPU up to twice as fast
KEEP_MEMORY := MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=8000000000
ON_CPU = $(if $(filter .,$(EDITION)),$(KEEP_MEMORY))
robustness: setup $(call UNBUILT,data/export/*/manifest.csv)  ## [EDITION=imagenet]: measure robustness on an edition's finished sets, pulled or built, and attack its models
	cd "$(EDITION)/studies/robustness" && $(ON_CPU) dvc repro && dvc metrics show
	cd "$(EDITION)/studies/attacks" && $(ON_CPU) dvc repro && dvc metrics show

TRAINING_IMAGES ?= 100
# finished runs that DVC's cache holds are taken from there; the rest are trained at the same time, then taken over
training: setup $(call UNBUILT,data/index.parquet)  ## [EDITION=imagenet]: train for robustness and on scenarios, and show the metrics; the sample draws its images
	@case "$(EDITION)" in .) cd sample && python training_images.py --per-class $(TRAINING_IMAGES);; esac
	cd "$(EDITION)/studies/training" && dvc repro data && { dvc checkout --quiet 2>/dev/null || true; } \
	&& $(ON_CPU) cleanset training train && dvc repro && dvc metrics show
	@git diff --quiet HEAD -- "$(EDITION)/studies/training" || echo "tracked files changed: settings" \
	"changed, or this is not an x86-64 processor with AVX2 and the locked torch, which trains other weights (docs/training.md)"

remote: setup  ## URL=https://…: the address that finished sets are read from, in every edition
	@test -n "$(URL)" || { echo 'say where they are: make remote URL=https://…'; exit 1; }
	dvc remote modify origin url "$(URL)"
	for folder in imagenet imagenet-published $(foreach study,robustness attacks contest training,studies/$(study) imagenet/studies/$(study)); do \
	(cd $$folder && dvc remote modify origin url "$(URL)") || exit 1; done

# files stay on one process, in the order that tests/conftest.py gives them
# three processes share two cores, since many a test waits for a browser or a server; each computes on one thread
PYTEST := OMP_NUM_THREADS=1 $(KEEP_MEMORY) pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder
# lint and types on one core while the tests are collected on the other
test: setup  ## lint, type check, most tests (6 minutes on two cores); with LONG=1 those over a second, too, as .ci/run does (15 to 25), with ALL=1 all, as the workflow does (45)
	@$(MAKE) --no-print-directory --jobs=2 lint tests

# MAKEFLAGS: what the tests run of this file are no jobs of this run
tests: setup
	MAKEFLAGS= $(PYTEST) $(if $(LONG)$(ALL),,--hypothesis-profile fast) $(if $(ALL),,-m 'not exhaustive$(if $(LONG),, and not long)')

test-fast: setup  ## the tests of rules, reviews, tables and reports: nothing built, no browser, no server (under a minute)
	$(PYTEST) --numprocesses 2 --fast

test-ray: .venv-ray/.ready  ## the tests of engine ray, in an environment of its own; two nodes as root, with iproute2
	.venv-ray/bin/python -m pytest tests/scoring/test_ray.py tests/studies/attacks/test_on_ray.py tests/studies/robustness/test_on_ray.py tests/studies/training/test_on_ray.py tests/studies/test_two_nodes.py

test-generate: .venv-generate/.ready  ## the tests of generated backgrounds, in an environment of its own with diffusers
	.venv-generate/bin/python -m pytest tests/studies/robustness/scenarios/test_generating.py

# in addition to all of .venv's packages
.venv-%/.ready: $(VENV)/.ready requirements-%.txt
	$(VENV)/bin/python -m venv .venv-$*
	.venv-$*/bin/python -c 'import pathlib, site; pathlib.Path(site.getsitepackages()[0], "main.pth").write_text("import site; site.addsitedir(\"" + site.getsitepackages()[0].replace("/.venv-$*/", "/.venv/") + "\")\n")'
	.venv-$*/bin/pip install --quiet --no-cache-dir --disable-pip-version-check --no-deps --require-hashes --requirement requirements-$*.txt
	@touch $@

lint: setup  ## ruff, mypy, the directions of imports
	ruff check
	ruff format --check
	mypy
	lint-imports --no-logo

docs: setup  ## the site of docs/ in build/docs, to be read without a network
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict --quiet
	@echo 'The site is build/docs/index.html'

release: setup  ## [DRY=1]: sdist and wheel in dist/, checked; with DRY=1 of what is there, with what a release lacks
	pip install --quiet build twine
	python release/build.py $(if $(DRY),--dry-run)

real: setup  ## build an edition of real photographs (CLEANSET_REAL: their folder) and compare its numbers
	@test -n "$(CLEANSET_REAL)" || test -d ../shared/real || { echo 'say where they are: make real CLEANSET_REAL=…'; exit 1; }
	pytest tests/real --real-precision float64

published: setup  ## repeat SCOOTER's procedure on its published lists and verdicts, and compare
	PYTHONPATH=sample:. python bench/replay.py build/published

edition: setup  ## make DIR=…: a new edition in that folder (params, empty reviews, DVC project)
	@test -n "$(DIR)" || { echo 'say where: make edition DIR=editions/mine'; exit 1; }
	cleanset edition "$(DIR)"

review: setup  ## make REVIEWER=…: review images in the browser (EDITION: its folder, else this one)
	@test -n "$(REVIEWER)" || { echo 'say who you are: make review REVIEWER=name'; exit 1; }
	cd "$(EDITION)" && cleanset review serve --reviewer "$(REVIEWER)"

judge: setup  ## make JUDGE=…: judge the images of the contest in the browser (EDITION: its folder, else this one)
	@test -n "$(JUDGE)" || { echo 'say who you are: make judge JUDGE=id, as in the roster'; exit 1; }
	cd "$(EDITION)" && cleanset contest judge --judge "$(JUDGE)" --contest studies/contest

check-gpu: setup  ## prove the GPU path: the scores of the CPU, all precisions, rates (needs CUDA and CLEANSET_REAL)
	python bench/check_gpu.py

BENCHES = $(shell sed -nE 's/^\| `([a-z_]+)` .*/\1/p' bench/README.md)
bench: setup  ## NAME=…: measure how fast something is; without a name, list what can be measured
ifeq ($(NAME),)
	@echo 'make bench NAME=…, of $(BENCHES)'
else
	@case " $(BENCHES) " in *" $(NAME) "*) ;; *) echo 'name one: make bench NAME=…, of $(BENCHES)' >&2; exit 1;; esac
	PYTHONPATH=sample:. python bench/$(NAME).py $(OPTIONS)
endif

LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-header
lock:  ## pin requirements.txt, requirements-ray.txt and requirements-generate.txt again (needs uv)
	$(LOCK) --extra build --extra review --extra text --extra robustness --extra attacks --extra training --extra dev --extra docs \
	--no-emit-package opencv-python pyproject.toml -o requirements.txt
	echo 'ray[data]==2.60.0' | $(LOCK) --constraint requirements.txt - -o requirements-ray.txt
	printf 'diffusers==0.42.1\ntransformers==5.23.0\n' | $(LOCK) --constraint requirements.txt - -o requirements-generate.txt

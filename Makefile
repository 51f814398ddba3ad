# Build, install and test replica_pin against one PostgreSQL installation.
#
#	make [PG_CONFIG=...] [WERROR=1] [ASSERTS=1]
#	make install
#	make installcheck	regression, isolation and TAP tests of what is installed
#	make installcheck RUNNING=1	SQL tests against the server that is running
#	make dist		the archive of a release
#
# Objects stand beside their sources, as in every PGXS project.

MODULE_big = replica_pin
OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/*/*.c)))

EXTENSION = replica_pin
DATA = $(sort $(wildcard replica_pin--*.sql))

REGRESS = $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
ISOLATION = $(patsubst specs/%.spec,%,$(sort $(wildcard specs/*.spec)))
ifndef RUNNING
REGRESS_OPTS = --temp-instance=$(CURDIR)/tmp_check_regress \
	--temp-config=$(CURDIR)/test/regress.conf
ISOLATION_OPTS = --temp-instance=$(CURDIR)/tmp_check_isolation \
	--temp-config=$(CURDIR)/test/regress.conf
TAP_TESTS = 1
PROVE_TESTS = $(sort $(wildcard test/t/*.pl))
PROVE_FLAGS = -I $(CURDIR)/test/lib
endif

# What the library says its version is: that of the SQL it was built with.
EXTVERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" replica_pin.control)

PG_CPPFLAGS = -I$(libpq_srcdir) -DRPIN_VERSION='"$(EXTVERSION)"'
PG_CFLAGS = -Wall -Wextra -Wno-unused-parameter -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wwrite-strings -Wvla -Wno-declaration-after-statement \
	-Wno-missing-field-initializers
SHLIB_LINK = $(libpq)

ifdef WERROR
PG_CFLAGS += -Werror
endif
ifdef ASSERTS
PG_CFLAGS += -DUSE_ASSERT_CHECKING=1
endif

EXTRA_CLEAN = build tmp_check tmp_check_regress tmp_check_isolation output_iso

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# Any header may be included anywhere: few files, all built in seconds.
$(OBJS): $(wildcard src/*.h src/*/*.h) replica_pin.control

dist:
	script/dist

print-%:
	@echo $($*)

.PHONY: dist

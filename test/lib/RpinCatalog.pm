# What the extension is in a database: to compare it before and after something
# that must not change it.

package RpinCatalog;

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT = qw(described);

# Everything that the extension made, with owner, privileges and comment. Row types
# are members from PostgreSQL 17 on.
my $describe = <<'EOF';
SELECT format('%s schema %s %s', nspname, nspacl, obj_description(oid, 'pg_namespace'))
FROM pg_namespace WHERE nspname = 'replica_pin'
UNION ALL
SELECT format('%s function %s %s %s %s %s %s %s', p.oid::regprocedure, proowner::regrole, prokind,
  provolatile, proparallel, pg_get_function_result(p.oid), proacl, obj_description(p.oid, 'pg_proc'))
FROM pg_proc p WHERE pronamespace = 'replica_pin'::regnamespace
UNION ALL
SELECT format('%s relation %s %s %s %s', oid::regclass, relowner::regrole, relacl,
  obj_description(oid, 'pg_class'), pg_get_viewdef(oid))
FROM pg_class WHERE relnamespace = 'replica_pin'::regnamespace
UNION ALL
SELECT format('%s extension %s %s', extname, extversion, obj_description(oid, 'pg_extension'))
FROM pg_extension WHERE extname = 'replica_pin'
UNION ALL
SELECT format('members %s', count(*)) FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND classid <> 'pg_type'::regclass
  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'replica_pin')
ORDER BY 1
EOF

sub described
{
	my ($node, $database) = @_;
	return $node->safe_psql($database, $describe);
}

1;

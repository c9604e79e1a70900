-- The contents of a schema, one line for each object, in an order that does not depend on the server.
-- name: describe
WITH relation AS (
    SELECT c.oid, c.relname, c.relkind, c.reloptions, c.reltoastrelid
    FROM pg_class c WHERE c.relnamespace = $1::text::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S')
), line (thing, part, name, text) AS (
    SELECT r.relname, 0, '', concat_ws(' ',
        CASE r.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view' ELSE 'sequence' END,
        r.relname, nullif(array_to_string(ARRAY(SELECT unnest(r.reloptions) ORDER BY 1), ' '), ''),
        (SELECT 'toast: ' || array_to_string(ARRAY(SELECT unnest(t.reloptions) ORDER BY 1), ' ')
         FROM pg_class t WHERE t.oid = r.reltoastrelid AND t.reloptions IS NOT NULL))
    FROM relation r
  UNION ALL
    SELECT r.relname, 1, to_char(a.attnum, 'FM000'), concat_ws(' ', '  column', a.attname, format_type(a.atttypid,
        a.atttypmod),
        CASE WHEN l.collname <> 'default' THEN 'collate ' || l.collname END, CASE WHEN a.attnotnull THEN 'not null' END,
        CASE a.attidentity WHEN 'a' THEN 'identity always' WHEN 'd' THEN 'identity' END,
            'default ' || pg_get_expr(d.adbin, d.adrelid))
    FROM relation r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
        AND r.relkind <> 'S'
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum LEFT
        JOIN pg_collation l ON l.oid = a.attcollation
  UNION ALL
    SELECT r.relname, 2, o.conname, concat_ws(' ', '  constraint', o.conname, pg_get_constraintdef(o.oid))
    FROM relation r JOIN pg_constraint o ON o.conrelid = r.oid AND o.contype <> 'n'
  UNION ALL
    SELECT r.relname, 3, i.relname, '  ' || pg_get_indexdef(i.oid)
    FROM relation r JOIN pg_index x ON x.indrelid = r.oid JOIN pg_class i ON i.oid = x.indexrelid
  UNION ALL
    SELECT r.relname, 4, t.tgname, '  ' || pg_get_triggerdef(t.oid)
    FROM relation r JOIN pg_trigger t ON t.tgrelid = r.oid AND NOT t.tgisinternal
  UNION ALL
    SELECT '~' || p.proname, 5, p.oid::regprocedure::text, concat_ws(' ', 'function',
        p.proname || '(' || pg_get_function_arguments(p.oid) || ')',
        'returns', pg_get_function_result(p.oid), CASE p.provolatile WHEN 'v' THEN 'volatile' WHEN 's' THEN 'stable'
            ELSE 'immutable' END,
        CASE WHEN p.prosecdef THEN 'security definer' END, 'set ' || array_to_string(p.proconfig, ', '),
        'body', left(md5(replace(replace(p.prosrc, $1, 'name'),
            quote_literal(n.nspname), 'literal')), 8))
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.oid = $1::text::regnamespace
)
SELECT text FROM line ORDER BY thing COLLATE "C", part, name COLLATE "C";

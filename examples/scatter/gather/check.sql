-- Each run that was begun, with what its row must be and what is wrong with it. A result of a run that was never begun
-- is a line of its own, and wrong.
WITH begun AS (SELECT run FROM unnest($1::text[]) run),
value AS (SELECT (n::bigint * 7919 % 10007 + 1) AS value FROM generate_series(0, $2::int - 1) n),
wanted AS (SELECT count(*) AS replies, sum(value) AS sum, sum(value * value) AS squares FROM value),
came AS (
    SELECT run, count(*) AS results, min(replies) AS replies, min(sum) AS sum, min(squares) AS squares
        FROM result GROUP BY run),
faults AS (
    SELECT coalesce(b.run, c.run) AS run,
           concat_ws(', ',
               CASE WHEN b.run IS NULL THEN 'nobody began it' END,
               CASE WHEN c.run IS NULL THEN 'it did not end' END,
               CASE WHEN c.results > 1 THEN 'it ended ' || c.results || ' times' END,
               CASE WHEN (c.replies, c.sum, c.squares) <> (w.replies, w.sum, w.squares)
                    THEN format('%s replies counted, sum %s, squares %s; want %s, %s, %s', c.replies, c.sum, c.squares,
                        w.replies, w.sum, w.squares) END) AS fault
    FROM begun b
    FULL JOIN came c ON c.run = b.run
    CROSS JOIN wanted w)
SELECT run, fault FROM faults ORDER BY fault = '', run

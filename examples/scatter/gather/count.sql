SELECT count(*), coalesce(sum(value), 0)::bigint, coalesce(sum(value * value), 0)::bigint FROM item WHERE run = $1

-- The items that a run has left, or that came after its end.
SELECT i.collected_for, count(*) FROM :schema.saga_item i WHERE i.collection = 'answer' GROUP BY 1 ORDER BY 1

-- joins with lookups
SELECT COUNT(*) FROM t JOIN look l ON l.area = t.s
SELECT area, COUNT(*) FROM t, look WHERE s = code AND a > 1 GROUP BY area ORDER BY area
SELECT area, COUNT(*) FROM t JOIN look ON s = code AND area <> 'east' AND a > pop - 4 GROUP BY area
SELECT area, COUNT(*) FROM t LEFT JOIN look ON s = code AND area <> 'east' GROUP BY area ORDER BY area
SELECT COUNT(*) FROM t SEMI JOIN look ON s = code
SELECT COUNT(*) FROM t ANTI JOIN look ON s = code
SELECT COUNT(*) FROM t ANTI JOIN look ON nullif(s, 'x') = code AND pop > 3
SELECT q.b, COUNT(*) FROM t JOIN (SELECT code, upper(area) b FROM look WHERE pop < 5) q ON s = q.code GROUP BY q.b
WITH w AS (SELECT area, max(code) AS c FROM look GROUP BY area) SELECT area, SUM(a) FROM t JOIN w ON s = c GROUP BY area
WITH w AS (SELECT code FROM look WHERE pop = 3) SELECT COUNT(*) FROM t WHERE s IN (SELECT code FROM w)
SELECT COUNT(*) FROM t WHERE NOT EXISTS (SELECT * FROM look WHERE code = s)
SELECT area, COUNT(*) c, RANK() OVER (ORDER BY COUNT(*) DESC) FROM t JOIN look ON s = code GROUP BY area
WITH g AS (SELECT s, COUNT(*) c FROM t GROUP BY s) SELECT area, c FROM g JOIN look ON s = code ORDER BY 1
-- numbers beside groups, and joins of what is released
SELECT s, 100.0 * COUNT(*) / (SELECT COUNT(*) FROM t) AS share FROM t GROUP BY s ORDER BY s
SELECT COUNT(*) / (SELECT SUM(a) FROM t WHERE f) FROM t WHERE a > 2
SELECT s, AVG(a) - (SELECT AVG(a) FROM t JOIN look ON s = code) FROM t GROUP BY s ORDER BY s
SELECT s, MEDIAN(a) - (SELECT MEDIAN(a) FROM t WHERE n > 0) FROM t GROUP BY s ORDER BY s
SELECT a, COUNT(*) FROM t GROUP BY a HAVING COUNT(*) > (SELECT COUNT(*) / 8 FROM t) ORDER BY a
SELECT (SELECT COUNT(*) FROM t WHERE f) AS yes, (SELECT AVG(a) FROM t) AS mean
SELECT a, c FROM (SELECT a, COUNT(*) c FROM t GROUP BY a) WHERE c > (SELECT AVG(c) FROM (SELECT COUNT(*) c FROM t GROUP BY a)) ORDER BY a
WITH x AS (SELECT s, COUNT(*) c FROM t GROUP BY s), y AS (SELECT s, AVG(a) m FROM t GROUP BY s) SELECT x.s, c, m FROM x JOIN y ON x.s = y.s ORDER BY 1
WITH x AS (SELECT s, COUNT(*) c FROM t GROUP BY s), y AS (SELECT s, AVG(a) m FROM t WHERE s <> 'x' GROUP BY s) SELECT s, c, m FROM x LEFT JOIN y USING (s) ORDER BY s
SELECT p.c - q.c FROM (SELECT COUNT(*) c FROM t) p, (SELECT COUNT(*) c FROM t WHERE f) q
SELECT 'f' AS k, COUNT(*) FROM t WHERE f UNION SELECT 'g', COUNT(*) FROM t WHERE NOT f ORDER BY 1
SELECT s, c, c / SUM(c) OVER () FROM (SELECT s, COUNT(*) c FROM t GROUP BY s) ORDER BY s
SELECT a, r FROM (SELECT a, RANK() OVER (ORDER BY COUNT(*) DESC) r FROM t GROUP BY a) WHERE r <= 3 ORDER BY r
-- lists, widths, names that stand before
SELECT QUANTILE_CONT(a, [0.25, 0.75]) FROM t
SELECT s, PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY a DESC) FROM t GROUP BY s ORDER BY s
SELECT PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY a DESC) FROM t
SELECT COUNT(*) FROM t WHERE a IN [1, 2] OR list_contains([5], a) OR a = ANY([0, 3])
SELECT COUNT(*) FROM t WHERE NOT n IN [1, 2]
SELECT lpad(CAST(a AS VARCHAR), 3, '0') k, COUNT(*) FROM t GROUP BY k ORDER BY k
SELECT format('{:02d}:00', n) k, printf('%d-%s', a, s) l, COUNT(*) FROM t GROUP BY k, l ORDER BY k, l
SELECT a, COUNT(*) AS c, c * 2 AS twice FROM t GROUP BY a ORDER BY a
SELECT GROUPING(s, f) AS g, s, f, COUNT(*) FROM t GROUP BY CUBE (s, f) ORDER BY g, s, f
SELECT REGR_R2(a, n), REGR_COUNT(a, n), REGR_AVGX(a, n), REGR_AVGY(a, n), REGR_SXX(a, n), REGR_SXY(a, n) FROM t

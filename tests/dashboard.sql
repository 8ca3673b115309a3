-- counts
SELECT count(*) FROM flights WHERE arr_delay IS NOT NULL
SELECT COUNT(1) FROM flights WHERE hour BETWEEN 6 AND 9
SELECT COUNT(arr_delay) AS n FROM flights WHERE origin_state IN ('CA','NY','TX') AND hour >= 17
SELECT COUNT(*) AS "count" FROM main.flights WHERE flight_date = '2001-03-01'
SELECT COUNT(*) FROM flights AS f WHERE f.origin_state <> 'TX' AND NOT (f.arr_delay > 0)
SELECT COUNT(*) FROM flights WHERE origin_state LIKE 'N%'
SELECT COUNT(*) FROM flights WHERE origin_state NOT IN ('CA', 'TX') AND arr_delay NOT BETWEEN -10 AND 10
SELECT COUNT(*) FROM flights WHERE (hour < 6 OR hour > 22) AND arr_delay > 15
SELECT COUNT(*) FROM flights WHERE flight_date >= '2001-02-01'::date AND flight_date < '2001-03-01'::date
SELECT COUNT(*) FROM flights WHERE flight_date >= CAST('2001-02-01' AS TIMESTAMP) AND flight_date < CAST('2001-03-01' AS TIMESTAMP)
SELECT COUNT(*) FROM flights WHERE flight_date BETWEEN DATE '2001-02-01' AND DATE '2001-02-01' + INTERVAL '6 days'
SELECT COUNT(*) AS cnt FROM "flights" WHERE "origin_state" = 'CA' AND "hour" IN (7, 8, 9)
SELECT COUNT(*) FROM flights WHERE distance >= 500 AND distance < 1000
SELECT COUNT(*) FROM flights WHERE distance BETWEEN 500 AND 999
SELECT COUNT(*) FROM flights WHERE distance >= 1000
SELECT COUNT(*) FROM flights WHERE 1 = 1 AND arr_delay > 0
SELECT COUNT(*) FROM flights WHERE TRUE
SELECT COUNT(*) FROM flights WHERE arr_delay > 1000
SELECT COUNT(*) FROM flights WHERE flight_date > '2005-01-01'
SELECT COUNT(*) * 2 AS twice, COUNT(*) + 1 FROM flights
-- groups
SELECT origin_state, COUNT(*) AS total FROM flights GROUP BY 1 ORDER BY 2 DESC
SELECT hour AS h, count(*) AS n FROM flights GROUP BY h
SELECT hour AS "Hour of day", COUNT(*) AS "Flights" FROM flights GROUP BY "Hour of day" ORDER BY "Flights" DESC
SELECT f.hour, COUNT(f.arr_delay) FROM flights f GROUP BY f.hour ORDER BY f.hour
SELECT "flights"."origin_state" AS "origin_state", COUNT(*) AS "count" FROM "main"."flights" GROUP BY "flights"."origin_state" ORDER BY "flights"."origin_state" ASC
SELECT flight_date, COUNT(*) FROM flights WHERE origin_state = 'CA' GROUP BY flight_date
SELECT origin_state, hour, COUNT(*) AS n FROM flights GROUP BY ALL
SELECT origin_state, hour, COUNT(*) AS n FROM flights GROUP BY ALL ORDER BY ALL
SELECT origin_state FROM flights GROUP BY origin_state
SELECT DISTINCT origin_state FROM flights ORDER BY origin_state
SELECT DISTINCT hour FROM flights ORDER BY 1 DESC
-- averages and sums
SELECT AVG(arr_delay) AS mean, COUNT(*) AS n FROM flights WHERE arr_delay > 0
SELECT origin_state, AVG(arr_delay) AS avg_delay FROM flights GROUP BY origin_state ORDER BY avg_delay DESC LIMIT 10
SELECT origin_state, hour, AVG(arr_delay) FROM flights WHERE origin_state IN ('CA','TX') GROUP BY origin_state, hour
SELECT AVG(CAST(arr_delay AS DOUBLE)) FROM flights
SELECT AVG(arr_delay::FLOAT) FROM flights WHERE hour = 8
SELECT AVG(GREATEST(arr_delay, 0)) FROM flights
SELECT AVG(CASE WHEN arr_delay > 0 THEN arr_delay END) FROM flights
SELECT AVG(arr_delay) FILTER (WHERE arr_delay > 0) AS late_avg FROM flights
SELECT SUM(arr_delay) / COUNT(*) FROM flights
SELECT SUM(arr_delay) * 1.0 / COUNT(*) AS avg_delay FROM flights
SELECT SUM(arr_delay) / NULLIF(COUNT(arr_delay), 0) FROM flights WHERE hour = 10
SELECT SUM(arr_delay) / 60.0 AS hours_late FROM flights WHERE arr_delay > 0
SELECT SUM(ABS(arr_delay)) FROM flights
SELECT SUM(arr_delay * 2 + 1) FROM flights
SELECT SUM(CASE WHEN arr_delay > 0 THEN arr_delay ELSE 0 END) AS total_late FROM flights
SELECT flight_date, SUM(arr_delay) FROM flights GROUP BY 1 ORDER BY 1
SELECT hour, COALESCE(SUM(arr_delay), 0) AS s FROM flights WHERE origin_state = 'TX' GROUP BY hour ORDER BY hour
SELECT FORMAT('{:.1f}', AVG(arr_delay)) FROM flights
SELECT CAST(AVG(arr_delay) AS DECIMAL(10,2)) FROM flights
SELECT ROUND(AVG(arr_delay)) FROM flights
SELECT FLOOR(AVG(arr_delay)), CEIL(AVG(arr_delay)) FROM flights
SELECT AVG(arr_delay - hour) FROM flights
SELECT AVG(hour), AVG(arr_delay), COUNT(*) FROM flights WHERE origin_state = 'NY'
-- joins
SELECT region, COUNT(*) FROM flights JOIN states ON origin_state = abr GROUP BY region
SELECT s.region, COUNT(*) AS n FROM flights f INNER JOIN states s ON s.abr = f.origin_state GROUP BY 1 ORDER BY n DESC
SELECT s.region, f.hour, COUNT(*) FROM flights f JOIN states s ON f.origin_state = s.abr GROUP BY s.region, f.hour
SELECT s.region, SUM(f.arr_delay) AS d, COUNT(*) AS n FROM flights f JOIN states s ON f.origin_state = s.abr GROUP BY s.region HAVING COUNT(*) > 100
SELECT s.region, ROUND(AVG(f.arr_delay), 2) AS a FROM flights f JOIN states s ON f.origin_state = s.abr GROUP BY s.region ORDER BY a DESC LIMIT 2
SELECT s.region, 100.0 * SUM(CASE WHEN f.arr_delay > 15 THEN 1 ELSE 0 END) / COUNT(*) AS pct FROM flights f JOIN states s ON f.origin_state = s.abr GROUP BY s.region
SELECT s.region, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS pct FROM flights f JOIN states s ON f.origin_state = s.abr GROUP BY s.region
SELECT COUNT(*) FROM flights f JOIN states s ON f.origin_state = s.abr WHERE s.region = 'West' AND f.arr_delay > 30
SELECT COUNT(*) FROM flights f LEFT JOIN states s ON f.origin_state = s.abr WHERE s.region IS NULL
SELECT COUNT(*) FROM flights WHERE origin_state NOT IN (SELECT abr FROM states WHERE region = 'South')
SELECT COUNT(*) FROM flights f WHERE EXISTS (SELECT 1 FROM states s WHERE s.abr = f.origin_state AND s.region = 'West')
SELECT COUNT(*) FROM flights f WHERE NOT EXISTS (SELECT * FROM states s WHERE s.abr = f.origin_state AND s.region = 'West')
SELECT s.region, COUNT(*) FROM flights f, states s WHERE f.origin_state = s.abr GROUP BY s.region
SELECT s.region, COUNT(*) FROM states s JOIN flights f ON f.origin_state = s.abr GROUP BY s.region
SELECT s.region, COUNT(*) FROM flights f JOIN states s ON f.origin_state = s.abr AND s.region <> 'West' GROUP BY s.region
SELECT COUNT(*) FROM flights f SEMI JOIN states s ON f.origin_state = s.abr
SELECT COUNT(*) FROM flights f ANTI JOIN states s ON f.origin_state = s.abr
SELECT r.region, COUNT(*) FROM flights f JOIN (SELECT abr, region FROM states WHERE region = 'West') r ON f.origin_state = r.abr GROUP BY r.region
WITH west AS (SELECT abr FROM states WHERE region = 'West') SELECT COUNT(*) FROM flights WHERE origin_state IN (SELECT abr FROM west)
WITH west AS (SELECT abr FROM states WHERE region = 'West') SELECT COUNT(*) FROM flights JOIN west ON origin_state = abr
SELECT COALESCE(s.region, 'unknown') AS region, COUNT(*) FROM flights f LEFT JOIN states s ON f.origin_state = s.abr GROUP BY 1
SELECT CASE WHEN s.region IN ('West') THEN 'West' ELSE 'Other' END AS side, COUNT(*) FROM flights f JOIN states s ON f.origin_state = s.abr GROUP BY side
SELECT x.region, x.n FROM (SELECT s.region, COUNT(*) AS n FROM flights f JOIN states s ON f.origin_state = s.abr GROUP BY s.region) x ORDER BY x.n DESC LIMIT 1
SELECT COUNT(*) FROM flights WHERE origin_state = (SELECT abr FROM states WHERE abr = 'CA')
-- having
SELECT origin_state, COUNT(*) AS n FROM flights GROUP BY origin_state HAVING n BETWEEN 500 AND 2000 ORDER BY n
SELECT origin_state, SUM(arr_delay) FROM flights GROUP BY origin_state HAVING SUM(arr_delay) > 10000
SELECT hour, AVG(arr_delay) AS a FROM flights GROUP BY hour HAVING a > 12 AND COUNT(*) > 100 ORDER BY a DESC
SELECT origin_state, COUNT(*) FROM flights WHERE arr_delay > 60 GROUP BY origin_state HAVING COUNT(*) >= 50 ORDER BY COUNT(*) DESC, origin_state
SELECT origin_state, 100.0*COUNT_IF(arr_delay > 15)/COUNT(*) AS pct FROM flights GROUP BY origin_state HAVING COUNT(*) > 300 ORDER BY pct DESC LIMIT 5
SELECT hour FROM flights GROUP BY hour HAVING COUNT(*) > 3000 ORDER BY hour
SELECT COUNT(*) FROM (SELECT origin_state FROM flights GROUP BY origin_state HAVING COUNT(*) > 1000) t
SELECT COUNT(*) FROM flights HAVING COUNT(*) > 10
-- order
SELECT hour, COUNT(*) AS n FROM flights GROUP BY hour ORDER BY n DESC, hour ASC
SELECT origin_state, AVG(arr_delay) FROM flights GROUP BY origin_state ORDER BY 2 DESC NULLS LAST, 1
SELECT origin_state, COUNT(*) FROM flights GROUP BY origin_state ORDER BY -COUNT(*)
SELECT origin_state FROM flights GROUP BY origin_state ORDER BY COUNT(*) DESC LIMIT 5
SELECT hour, COUNT(*) FROM flights GROUP BY hour ORDER BY AVG(arr_delay) DESC
SELECT flight_date, COUNT(*) AS n FROM flights GROUP BY flight_date ORDER BY n DESC, flight_date LIMIT 7
SELECT origin_state, COUNT(*) n FROM flights GROUP BY 1 ORDER BY n DESC LIMIT 5 OFFSET 5
SELECT origin_state, COUNT(*) n FROM flights GROUP BY 1 ORDER BY n ASC, 1 LIMIT 3
SELECT hour, COUNT(*) FROM flights GROUP BY hour ORDER BY COUNT(*) DESC FETCH FIRST 3 ROWS ONLY
WITH ranked AS (SELECT origin_state, hour, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY origin_state ORDER BY COUNT(*) DESC, hour) AS rn FROM flights WHERE origin_state IN ('CA','TX','GA') GROUP BY origin_state, hour) SELECT origin_state, hour, n FROM ranked WHERE rn = 1 ORDER BY origin_state
-- dates
SELECT date_trunc('week', flight_date) AS week, COUNT(*) FROM flights GROUP BY week ORDER BY week
SELECT strftime(flight_date, '%Y-%m') AS ym, COUNT(*) FROM flights GROUP BY ym ORDER BY ym
SELECT strftime('%Y-%m', flight_date) AS ym, COUNT(*) FROM flights GROUP BY ym ORDER BY ym
SELECT EXTRACT(month FROM flight_date) AS m, COUNT(*) FROM flights GROUP BY m ORDER BY m
SELECT month(flight_date), AVG(arr_delay) FROM flights GROUP BY month(flight_date) ORDER BY 1
SELECT year(flight_date) AS y, quarter(flight_date) AS q, COUNT(*) FROM flights GROUP BY y, q ORDER BY y, q
SELECT date_part('dow', flight_date) AS dow, COUNT(*) FROM flights GROUP BY dow ORDER BY dow
SELECT isodow(flight_date), COUNT(*) FROM flights GROUP BY 1 ORDER BY 1
SELECT CAST(date_trunc('month', flight_date) AS DATE) AS month, COUNT(*) FROM flights GROUP BY 1 ORDER BY 1
SELECT date_trunc('month', flight_date)::DATE AS month, ROUND(AVG(arr_delay), 2) FROM flights GROUP BY month ORDER BY month
SELECT DATE_TRUNC('MONTH', "flight_date") AS "flight_date", COUNT(*) AS "cnt" FROM "flights" GROUP BY DATE_TRUNC('MONTH', "flight_date") ORDER BY DATE_TRUNC('MONTH', "flight_date") ASC
SELECT COUNT(*) FROM flights WHERE EXTRACT(month FROM flight_date) = 2
SELECT COUNT(*) FROM flights WHERE month(flight_date) IN (1, 2) AND dayofweek(flight_date) IN (0, 6)
SELECT COUNT(*) FROM flights WHERE YEAR(flight_date) = 2001
SELECT COUNT(*) FROM flights WHERE flight_date >= DATE '2001-06-30' - INTERVAL 30 DAY
SELECT COUNT(*) FROM flights WHERE datediff('day', DATE '2001-01-01', flight_date) < 30
SELECT COUNT(*) FROM flights WHERE date_diff('day', DATE '2001-01-01', flight_date) BETWEEN 0 AND 6
SELECT COUNT(*) FROM flights WHERE flight_date - DATE '2001-01-01' < 10
SELECT COUNT(*) FROM flights WHERE strftime(flight_date, '%m') = '03'
SELECT COUNT(*) FROM flights WHERE flight_date::VARCHAR LIKE '2001-02%'
SELECT COUNT(*) FROM flights WHERE last_day(flight_date) = flight_date
SELECT CASE WHEN dayofweek(flight_date) IN (0, 6) THEN 'weekend' ELSE 'weekday' END AS part, COUNT(*), AVG(arr_delay) FROM flights GROUP BY part
SELECT weekofyear(flight_date) AS wk, COUNT(*) FROM flights GROUP BY wk ORDER BY wk
SELECT day(flight_date), COUNT(*) FROM flights GROUP BY 1 ORDER BY 1
SELECT make_date(2001, month(flight_date), 1) AS m, COUNT(*) FROM flights GROUP BY m ORDER BY m
SELECT date_trunc('month', flight_date) AS m, origin_state, COUNT(*) FROM flights GROUP BY m, origin_state ORDER BY m, origin_state
SELECT monthname(flight_date), COUNT(*) FROM flights GROUP BY 1
SELECT flight_date + INTERVAL 1 DAY AS next, COUNT(*) FROM flights GROUP BY 1
SELECT time_bucket(INTERVAL '7 days', flight_date) AS b, COUNT(*) FROM flights GROUP BY b ORDER BY b
SELECT epoch(flight_date) AS e, COUNT(*) FROM flights GROUP BY e
SELECT COUNT(*) FROM flights WHERE flight_date BETWEEN '2001-01-01' AND '2001-01-31' AND hour < 12
SELECT DATE_PART('month', flight_date), DATE_PART('day', flight_date), COUNT(*) FROM flights GROUP BY 1, 2 ORDER BY 1, 2
SELECT (EXTRACT(dow FROM flight_date) + 6) % 7 AS monday_first, COUNT(*) FROM flights GROUP BY 1 ORDER BY 1
SELECT COUNT(*) FROM flights WHERE EXTRACT('isodow' FROM flight_date) > 5
-- case
SELECT CASE WHEN hour BETWEEN 5 AND 11 THEN 'morning' WHEN hour BETWEEN 12 AND 16 THEN 'afternoon' WHEN hour BETWEEN 17 AND 21 THEN 'evening' ELSE 'night' END AS part, COUNT(*) AS n FROM flights GROUP BY part ORDER BY n DESC
SELECT CASE origin_state WHEN 'CA' THEN 'California' WHEN 'TX' THEN 'Texas' ELSE 'Other' END AS st, COUNT(*) FROM flights GROUP BY 1
SELECT IF(arr_delay > 15, 'late', 'on time') AS status, COUNT(*) FROM flights GROUP BY status
SELECT arr_delay > 15 AS late, COUNT(*) FROM flights GROUP BY late
SELECT arr_delay > 15 AS late, hour < 12 AS am, COUNT(*) FROM flights GROUP BY 1, 2 ORDER BY 1, 2
SELECT origin_state IN ('CA', 'OR', 'WA') AS pacific, AVG(arr_delay) FROM flights GROUP BY pacific
SELECT CASE WHEN arr_delay <= 0 THEN '0 or less' WHEN arr_delay <= 30 THEN '1-30' ELSE '30+' END AS b, COUNT(*), ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 2) AS pct FROM flights GROUP BY b ORDER BY pct DESC
SELECT CASE WHEN distance < 500 THEN 'short' WHEN distance < 1500 THEN 'medium' ELSE 'long' END AS haul, COUNT(*), AVG(arr_delay) FROM flights GROUP BY haul
SELECT origin_state || '-' || hour AS k, COUNT(*) FROM flights WHERE origin_state IN ('CA','TX') GROUP BY k
SELECT concat(origin_state, ' ', CAST(hour AS VARCHAR)) AS k, COUNT(*) FROM flights WHERE hour < 3 GROUP BY k
SELECT LEFT(origin_state, 1) AS letter, COUNT(*) FROM flights GROUP BY letter ORDER BY letter
SELECT lower(origin_state), COUNT(*) FROM flights GROUP BY lower(origin_state)
SELECT NULLIF(origin_state, 'CA') AS s, COUNT(*) FROM flights GROUP BY s
SELECT LPAD(CAST(hour AS VARCHAR), 2, '0') AS hh, COUNT(*) FROM flights GROUP BY hh ORDER BY hh
SELECT printf('%02d:00', hour) AS hh, COUNT(*) FROM flights GROUP BY hh ORDER BY hh
SELECT format('{:02d}:00', hour) AS hh, COUNT(*) FROM flights GROUP BY hh ORDER BY hh
-- sum case
SELECT SUM(CASE WHEN arr_delay > 15 THEN 1 END) FROM flights
SELECT SUM((arr_delay > 15)::INT) AS late FROM flights
SELECT SUM(CAST(arr_delay > 15 AS INTEGER)) FROM flights
SELECT COUNT(*) FILTER (WHERE arr_delay > 15) AS late, COUNT(*) FILTER (WHERE arr_delay <= 15) AS ok FROM flights
SELECT COUNT(*) FILTER (arr_delay > 15) FROM flights
SELECT countif(arr_delay > 15) FROM flights
SELECT hour, SUM(CASE WHEN origin_state = 'CA' THEN 1 ELSE 0 END) AS ca, SUM(CASE WHEN origin_state = 'TX' THEN 1 ELSE 0 END) AS tx FROM flights GROUP BY hour ORDER BY hour
SELECT COUNT(NULLIF(arr_delay > 15, FALSE)) FROM flights
SELECT SUM(arr_delay) FILTER (WHERE hour < 12) - SUM(arr_delay) FILTER (WHERE hour >= 12) FROM flights
SELECT SUM(1) FROM flights WHERE hour = 3
SELECT SUM(arr_delay > 15) FROM flights
SELECT hour, COUNT(CASE WHEN arr_delay > 60 THEN 1 ELSE NULL END) AS n FROM flights GROUP BY hour ORDER BY hour
-- percentages
SELECT COUNT(*) FILTER (WHERE arr_delay > 15) * 100.0 / COUNT(*) FROM flights
SELECT ROUND(AVG(CASE WHEN arr_delay > 15 THEN 100.0 ELSE 0 END), 2) AS pct FROM flights
SELECT AVG((arr_delay > 15)::INT) FROM flights
SELECT AVG((arr_delay > 15)::INT) * 100 AS pct FROM flights WHERE origin_state = 'IL'
SELECT hour, COUNT(*)::DOUBLE / SUM(COUNT(*)) OVER () AS share FROM flights GROUP BY hour ORDER BY hour
SELECT origin_state, hour, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER (PARTITION BY origin_state) AS share FROM flights WHERE origin_state IN ('CA','NY') GROUP BY origin_state, hour ORDER BY 1, 2
SELECT 1.0 * SUM(CASE WHEN hour < 12 THEN 1 ELSE 0 END) / SUM(CASE WHEN hour >= 12 THEN 1 ELSE 0 END) AS am_pm FROM flights
SELECT 100 - 100.0 * COUNT_IF(arr_delay > 15) / COUNT(*) AS on_time FROM flights
SELECT CAST(SUM(CASE WHEN arr_delay > 15 THEN 1 ELSE 0 END) AS FLOAT) / COUNT(*) FROM flights
SELECT (COUNT_IF(arr_delay > 15) / COUNT(*)::FLOAT) * 100 FROM flights
SELECT 100.0 * COUNT(*) / (SELECT COUNT(*) FROM flights) AS pct FROM flights WHERE arr_delay > 15
SELECT origin_state, COUNT(*) * 100.0 / (SELECT COUNT(*) FROM flights) AS pct FROM flights GROUP BY origin_state ORDER BY pct DESC
SELECT ROUND(COUNT_IF(arr_delay > 15) * 100.0 / COUNT(*), 1) || '%' AS pct FROM flights
SELECT SUM(arr_delay) FILTER (WHERE hour < 12) * 1.0 / SUM(arr_delay) FROM flights
WITH t AS (SELECT COUNT(*) AS n, COUNT_IF(arr_delay > 15) AS late FROM flights) SELECT 100.0 * late / n FROM t
WITH t AS (SELECT hour, COUNT(*) AS n FROM flights GROUP BY hour) SELECT hour, n, 100.0 * n / SUM(n) OVER () AS pct FROM t ORDER BY pct DESC
SELECT hour, ROUND(100 * COUNT(*) / SUM(COUNT(*)) OVER (), 2) FROM flights GROUP BY hour
-- ctes and subqueries
WITH ca AS (SELECT hour, arr_delay FROM flights WHERE origin_state = 'CA') SELECT hour, AVG(arr_delay) FROM ca GROUP BY hour ORDER BY hour
WITH a AS (SELECT * FROM flights WHERE hour < 12), b AS (SELECT * FROM a WHERE arr_delay > 15) SELECT origin_state, COUNT(*) FROM b GROUP BY origin_state
SELECT MAX(n), MIN(n) FROM (SELECT hour, COUNT(*) AS n FROM flights GROUP BY hour) t
WITH daily AS (SELECT flight_date, COUNT(*) AS n FROM flights GROUP BY 1) SELECT date_trunc('month', flight_date) AS m, AVG(n) FROM daily GROUP BY m ORDER BY m
SELECT status, COUNT(*) FROM (SELECT CASE WHEN arr_delay > 15 THEN 'late' ELSE 'ok' END AS status FROM flights) t GROUP BY status
SELECT t.b, COUNT(*) FROM (SELECT arr_delay // 30 AS b FROM flights) AS t GROUP BY t.b ORDER BY t.b
SELECT a.n, b.n FROM (SELECT COUNT(*) AS n FROM flights WHERE hour < 12) a, (SELECT COUNT(*) AS n FROM flights WHERE hour >= 12) b
SELECT * FROM (SELECT origin_state, COUNT(*) AS n FROM flights GROUP BY origin_state) t WHERE n > 1000 ORDER BY n DESC
SELECT origin_state, COUNT(*) FROM flights GROUP BY origin_state HAVING COUNT(*) > (SELECT COUNT(*) / 51 FROM flights)
SELECT 'am' AS part, COUNT(*) FROM flights WHERE hour < 12 UNION ALL SELECT 'pm', COUNT(*) FROM flights WHERE hour >= 12
SELECT origin_state, COUNT(*) FROM flights WHERE origin_state = 'CA' GROUP BY 1 UNION ALL SELECT origin_state, COUNT(*) FROM flights WHERE origin_state = 'TX' GROUP BY 1
SELECT 'am' AS part, COUNT(*) FROM flights WHERE hour < 12 UNION SELECT 'pm', COUNT(*) FROM flights WHERE hour >= 12
FROM flights SELECT COUNT(*)
SELECT COUNT(*) FROM (SELECT DISTINCT origin_state FROM flights)
-- quantiles
SELECT MEDIAN(arr_delay) FROM flights WHERE origin_state = 'CA'
SELECT QUANTILE_CONT(arr_delay, 0.25) FROM flights
SELECT QUANTILE_CONT(arr_delay, [0.25, 0.5, 0.75]) FROM flights
SELECT QUANTILE(arr_delay, 0.9) FROM flights
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY arr_delay) AS p50, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY arr_delay) AS p90 FROM flights
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY arr_delay DESC) FROM flights
SELECT PERCENTILE_CONT([0.25, 0.75]) WITHIN GROUP (ORDER BY arr_delay) FROM flights
SELECT MEDIAN(hour) FROM flights WHERE arr_delay > 60
SELECT MEDIAN(arr_delay) FILTER (WHERE arr_delay > 0) FROM flights
SELECT APPROX_QUANTILE(arr_delay, 0.9) FROM flights WHERE hour < 12
-- histograms
SELECT arr_delay // 10 * 10 AS bucket, COUNT(*) FROM flights GROUP BY bucket ORDER BY bucket
SELECT FLOOR(arr_delay / 30.0) * 30 AS b, COUNT(*) FROM flights GROUP BY 1 ORDER BY 1
SELECT CAST(FLOOR(arr_delay / 20) AS INTEGER) * 20 AS b, COUNT(*) FROM flights GROUP BY b ORDER BY b
SELECT ROUND(arr_delay / 10) * 10 AS b, COUNT(*) FROM flights GROUP BY b ORDER BY b
SELECT ROUND(arr_delay, -1) AS b, COUNT(*) FROM flights GROUP BY b ORDER BY b
SELECT hour / 4 AS q, COUNT(*) FROM flights GROUP BY q ORDER BY q
SELECT hour // 4 AS q, COUNT(*) FROM flights GROUP BY q ORDER BY q
SELECT arr_delay - arr_delay % 15 AS b, COUNT(*) FROM flights GROUP BY b
SELECT LEAST(GREATEST(arr_delay, -30), 60) AS clipped, COUNT(*) FROM flights GROUP BY clipped ORDER BY clipped
SELECT CEIL(arr_delay / 60.0) AS hours, COUNT(*) FROM flights GROUP BY hours ORDER BY hours
SELECT FLOOR(distance / 500) * 500 AS d, COUNT(*) FROM flights GROUP BY d ORDER BY d
SELECT distance // 250 AS d, COUNT(*) FROM flights GROUP BY d ORDER BY d
SELECT FLOOR(distance / 250) AS d, AVG(arr_delay) FROM flights GROUP BY d ORDER BY d
SELECT FLOOR(arr_delay/15)*15 AS lo, FLOOR(arr_delay/15)*15 + 15 AS hi, COUNT(*) FROM flights GROUP BY lo, hi ORDER BY lo
SELECT FLOOR(arr_delay/15)*15 AS lo, COUNT(*), SUM(COUNT(*)) OVER (ORDER BY FLOOR(arr_delay/15)*15) AS cum FROM flights GROUP BY 1 ORDER BY 1
-- multi
SELECT COUNT(*), AVG(arr_delay), SUM(arr_delay), STDDEV(arr_delay) FROM flights
SELECT origin_state, COUNT(*) AS n, AVG(arr_delay) AS mean, SUM(CASE WHEN arr_delay > 15 THEN 1 ELSE 0 END) AS late FROM flights GROUP BY origin_state ORDER BY n DESC LIMIT 10
SELECT hour, COUNT(*), SUM(arr_delay), AVG(arr_delay) FROM flights GROUP BY hour ORDER BY hour
SELECT COUNT(*) AS n, COUNT(arr_delay) AS m, COUNT(*) - COUNT(arr_delay) AS missing FROM flights
SELECT flight_date, COUNT(*), SUM(arr_delay) FROM flights GROUP BY flight_date ORDER BY flight_date LIMIT 10
SELECT date_trunc('month', flight_date) AS m, COUNT(*) n, ROUND(AVG(arr_delay), 1) a, ROUND(100.0 * COUNT_IF(arr_delay > 15) / COUNT(*), 1) p FROM flights GROUP BY m ORDER BY m
SELECT 'all' AS label, COUNT(*) AS n, 5 AS five FROM flights
SELECT hour, COUNT(*) AS n, n * 2 AS twice FROM flights GROUP BY hour ORDER BY hour
-- windows
SELECT hour, COUNT(*), SUM(COUNT(*)) OVER (ORDER BY hour) AS running FROM flights GROUP BY hour ORDER BY hour
SELECT hour, COUNT(*), LAG(COUNT(*)) OVER (ORDER BY hour) AS prev FROM flights GROUP BY hour ORDER BY hour
SELECT hour, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY hour) AS change FROM flights GROUP BY hour ORDER BY hour
SELECT hour, COUNT(*), LEAD(COUNT(*), 1) OVER (ORDER BY hour) FROM flights GROUP BY hour ORDER BY hour
SELECT origin_state, COUNT(*), RANK() OVER (ORDER BY COUNT(*) DESC) FROM flights GROUP BY origin_state
SELECT origin_state, COUNT(*), ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) AS r FROM flights GROUP BY origin_state ORDER BY r LIMIT 5
SELECT origin_state, COUNT(*), NTILE(4) OVER (ORDER BY COUNT(*)) FROM flights GROUP BY origin_state
SELECT origin_state, COUNT(*), PERCENT_RANK() OVER (ORDER BY COUNT(*)), CUME_DIST() OVER (ORDER BY COUNT(*)) FROM flights GROUP BY origin_state
SELECT hour, COUNT(*), FIRST_VALUE(COUNT(*)) OVER (ORDER BY hour) FROM flights GROUP BY hour ORDER BY hour
SELECT hour, COUNT(*), MAX(COUNT(*)) OVER () AS top FROM flights GROUP BY hour ORDER BY hour
SELECT hour, COUNT(*) / MAX(COUNT(*)) OVER () AS rel FROM flights GROUP BY hour ORDER BY hour
SELECT origin_state, hour, COUNT(*) FROM flights GROUP BY CUBE(origin_state, hour)
SELECT origin_state, hour, COUNT(*) FROM flights GROUP BY GROUPING SETS ((origin_state), (hour), ())
SELECT COALESCE(origin_state, 'All') AS s, COUNT(*) FROM flights GROUP BY ROLLUP(origin_state)
SELECT GROUPING(origin_state) AS g, origin_state, COUNT(*) FROM flights GROUP BY ROLLUP(origin_state)
SELECT hour, COUNT(*), SUM(COUNT(*)) OVER w FROM flights GROUP BY hour WINDOW w AS (ORDER BY hour) ORDER BY hour
SELECT hour, AVG(arr_delay) - AVG(AVG(arr_delay)) OVER () AS dev FROM flights GROUP BY hour
-- misc
SELECT COUNT(*) FROM flights WHERE origin_state = 'XX'
SELECT COUNT(*) FROM flights WHERE origin_state IN ('CA', 'XX')
SELECT COUNT(*) FROM flights WHERE origin_state IN ('XX', 'ZZ')
SELECT COUNT(*) FROM flights WHERE origin_state <> 'XX'
SELECT origin_state, COUNT(*) FROM flights WHERE origin_state IN ('DC', 'VA', 'MD') GROUP BY origin_state
SELECT COUNT(*) FROM flights WHERE distance < 1000
SELECT COUNT(*) FROM flights WHERE arr_delay > 15.5
SELECT COUNT(*) FROM flights WHERE arr_delay = '5'
SELECT COUNT(*) FROM flights WHERE hour = '8'
SELECT COUNT(*) FROM flights WHERE hour % 2 <> 0 AND MOD(hour, 3) = 0
SELECT COUNT(*) FROM flights WHERE arr_delay > hour
SELECT COUNT(*) FROM flights WHERE arr_delay + hour > 30
SELECT COUNT(*) FROM flights WHERE ABS(arr_delay) BETWEEN 5 AND 10
SELECT COUNT(*) FROM flights WHERE SQRT(ABS(arr_delay)) < 3
SELECT COUNT(*) FROM flights WHERE arr_delay / 60.0 >= 1.5
SELECT COUNT(*) FROM flights WHERE LENGTH(origin_state) = 2
SELECT COUNT(*) FROM flights WHERE UPPER(origin_state) = 'CA'
SELECT COUNT(*) FROM flights WHERE origin_state ILIKE 'ca'
SELECT COUNT(*) FROM flights WHERE origin_state SIMILAR TO '(C|N).'
SELECT COUNT(*) FROM flights WHERE regexp_matches(origin_state, '^N[YJ]$')
SELECT COUNT(*) FROM flights WHERE origin_state ~ 'C.'
SELECT COUNT(*) FROM flights WHERE (origin_state, hour) IN (('CA', 7), ('TX', 8))
SELECT COUNT(*) FROM flights WHERE (origin_state = 'CA') = (hour < 12)
SELECT COUNT(*) FROM flights WHERE CASE WHEN hour < 12 THEN arr_delay > 15 ELSE arr_delay > 30 END
SELECT COUNT(*) FROM flights WHERE COALESCE(arr_delay, 0) > 0
SELECT COUNT(*) FROM flights WHERE arr_delay IS NULL
SELECT COUNT(*) FROM flights WHERE arr_delay IS DISTINCT FROM 0
SELECT COUNT(*) FROM flights WHERE list_contains([7,8], hour)
SELECT COUNT(*) FROM flights WHERE hour = ANY([7, 8, 9])
SELECT COUNT(*) FROM flights WHERE hour IN [7, 8]
SELECT COUNT(*) FROM flights WHERE hour & 1 = 0
SELECT COUNT(*) FROM flights WHERE xor(hour, 1) = 0
SELECT COUNT(*) FROM flights WHERE arr_delay > 2 * 30 AND hour < 24 / 2
SELECT COUNT(*) FROM flights LIMIT 10
SELECT COUNT(*) FROM flights LIMIT 0
SELECT COUNT(*), FROM flights
SELECT ALL COUNT(*) FROM flights
SELECT COUNT(ALL arr_delay) FROM flights
SELECT origin_state, COUNT(*) FROM flights WHERE hour = 8 GROUP BY origin_state HAVING COUNT(*) > 0
SELECT COUNT(*) > 50000 AS enough FROM flights
SELECT CASE WHEN COUNT(*) > 50000 THEN 'many' ELSE 'few' END FROM flights
SELECT hour, CASE WHEN COUNT(*) > 2500 THEN 'busy' ELSE 'quiet' END AS load, COUNT(*) FROM flights GROUP BY hour ORDER BY hour
SELECT SQRT(COUNT(*)), LN(COUNT(*)), POWER(COUNT(*), 2) FROM flights
SELECT GREATEST(COUNT_IF(hour < 12), COUNT_IF(hour >= 12)) FROM flights
SELECT COUNT(*)::INT AS n FROM flights
SELECT hour AS h FROM flights GROUP BY hour HAVING AVG(arr_delay) > 10 ORDER BY h
SELECT hour + 1 AS h, COUNT(*) FROM flights GROUP BY hour ORDER BY h
SELECT UPPER(origin_state) AS s, COUNT(*) FROM flights GROUP BY origin_state ORDER BY s
SELECT origin_state, COUNT(*) FROM flights GROUP BY origin_state ORDER BY LOWER(origin_state) DESC LIMIT 3
SELECT SUM(n) FROM (SELECT origin_state, COUNT(*) AS n FROM flights GROUP BY origin_state ORDER BY n DESC LIMIT 5)
SELECT "origin_state" AS "origin_state", AVG("arr_delay") AS "AVG(arr_delay)" FROM "flights" WHERE "flight_date" >= '2001-01-01 00:00:00.000000' AND "flight_date" < '2001-07-01 00:00:00.000000' GROUP BY "origin_state" ORDER BY "AVG(arr_delay)" DESC LIMIT 100
SELECT SUM(1) AS "sum:Number of Records:ok", "flights"."origin_state" AS "origin_state" FROM "flights" "flights" WHERE ("flights"."hour" >= 6) AND ("flights"."hour" <= 10) GROUP BY 2
SELECT CAST(EXTRACT(YEAR FROM "flights"."flight_date") AS BIGINT) AS "yr:flight_date:ok", COUNT(*) FROM "flights" GROUP BY 1
SELECT "source"."origin_state" AS "origin_state", COUNT(*) AS "count" FROM (SELECT "flights"."origin_state" AS "origin_state", "flights"."hour" AS "hour" FROM "flights" WHERE "flights"."arr_delay" > 15) "source" GROUP BY "source"."origin_state" ORDER BY "source"."origin_state" ASC
SELECT FLOOR(("flights"."arr_delay" - -60.0) / 30.0) * 30.0 + -60.0 AS "arr_delay", COUNT(*) AS "count" FROM "flights" GROUP BY 1 ORDER BY 1 ASC
SELECT CASE WHEN (("flights"."arr_delay") IS NULL) THEN 0 ELSE 1 END AS k, COUNT(1) FROM flights GROUP BY 1 HAVING (COUNT(1) > 0)

-- of adult
SELECT income, COUNT(*) AS people, ROUND(AVG(age), 1) AS mean_age FROM adult GROUP BY income ORDER BY people DESC
SELECT sex, income, COUNT(*) FROM adult GROUP BY sex, income ORDER BY 1, 2
SELECT education, 100.0 * SUM(CASE WHEN income LIKE '>50K%' THEN 1 ELSE 0 END) / COUNT(*) AS pct FROM adult GROUP BY education ORDER BY pct DESC LIMIT 5
SELECT CASE WHEN age < 25 THEN 'young' WHEN age < 45 THEN 'middle' WHEN age < 65 THEN 'older' ELSE 'senior' END AS band, COUNT(*) AS n FROM adult GROUP BY band HAVING COUNT(*) > 50 ORDER BY n DESC
SELECT COUNT(*) FILTER (WHERE hours_per_week > 40) * 1.0 / COUNT(*) AS overtime FROM adult
SELECT workclass, AVG(hours_per_week) AS h, STDDEV_SAMP(hours_per_week) AS sd FROM adult WHERE workclass IS NOT NULL GROUP BY workclass HAVING COUNT(*) > 500 ORDER BY h DESC
SELECT age // 10 * 10 AS decade, COUNT(*) AS n, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS share FROM adult GROUP BY 1 ORDER BY 1
SELECT MEDIAN(hours_per_week), QUANTILE_CONT(age, 0.9) FROM adult WHERE sex = 'Female'
SELECT marital_status, MEDIAN(age) FROM adult GROUP BY marital_status ORDER BY 2 DESC, 1
SELECT UPPER(LEFT(sex, 1)) AS s, COUNT(*) FROM adult GROUP BY ALL ORDER BY s
WITH w AS (SELECT * FROM adult WHERE hours_per_week >= 35) SELECT education_num, COUNT(*) AS n FROM w GROUP BY education_num ORDER BY education_num
SELECT COUNT(*) FROM adult WHERE education IN ('Bachelors', 'Masters', 'Doctorate') AND age BETWEEN 30 AND 39
SELECT COUNT(*) FROM adult WHERE occupation IS NULL
SELECT COUNT(occupation), COUNT(*), COUNT(*) - COUNT(occupation) AS missing FROM adult
SELECT occupation, COUNT(*) AS n FROM adult GROUP BY occupation ORDER BY n DESC NULLS LAST LIMIT 3
SELECT COALESCE(occupation, 'unknown') AS job, COUNT(*) FROM adult GROUP BY job ORDER BY job
SELECT income, VAR_POP(age) FROM adult GROUP BY income ORDER BY income
SELECT CORR(age, hours_per_week), COVAR_POP(age, hours_per_week), REGR_SLOPE(hours_per_week, age) FROM adult
SELECT sex, AVG(CASE WHEN income LIKE '>50K%' THEN 1.0 ELSE 0.0 END) AS rate FROM adult GROUP BY sex ORDER BY sex
SELECT (SELECT COUNT(*) FROM adult WHERE sex = 'Male') * 1.0 / (SELECT COUNT(*) FROM adult WHERE sex = 'Female') AS ratio
SELECT education_num >= 13 AS degree, income, COUNT(*) FROM adult GROUP BY ROLLUP (degree, income) ORDER BY ALL
SELECT a.sex, COUNT(*) FROM adult AS a WHERE a.age * 2 > a.hours_per_week + 30 GROUP BY a.sex ORDER BY 1
SELECT COUNT(*) FROM adult WHERE NOT (age < 30 OR hours_per_week < 20) AND workclass <> 'Private'
SELECT capital_gain >= 5000 AS big, COUNT(*) FROM adult GROUP BY 1 ORDER BY 1
SELECT DISTINCT sex FROM adult ORDER BY sex
SELECT age % 2 AS odd, SUM(hours_per_week) AS total FROM adult GROUP BY odd ORDER BY odd
SELECT n, COUNT(*) FROM (SELECT education_num AS n, COUNT(*) AS c FROM adult GROUP BY 1) GROUP BY n HAVING n < 4 ORDER BY n
SELECT RANK() OVER (ORDER BY COUNT(*) DESC) AS r, education, COUNT(*) AS n FROM adult GROUP BY education ORDER BY r LIMIT 4
SELECT 'all' AS who, COUNT(*) FROM adult UNION ALL SELECT sex, COUNT(*) FROM adult GROUP BY sex ORDER BY 1
SELECT SUM(hours_per_week) / COUNT(*) AS mean, GREATEST(AVG(age), 40) AS g FROM adult
-- of flights
SELECT date_trunc('month', day) AS m, COUNT(*) AS n, AVG(dep_delay) AS d FROM flights GROUP BY m ORDER BY m
SELECT strftime(day, '%Y-%m') AS m, COUNT_IF(dep_delay > 15) AS late FROM flights GROUP BY 1 ORDER BY 1
SELECT dayname(day) AS d, COUNT(*) FROM flights GROUP BY d ORDER BY COUNT(*) DESC, d
SELECT quarter(day) AS q, origin, COUNT(*) FROM flights GROUP BY q, origin ORDER BY q, origin
SELECT weekofyear(day) AS w, COUNT(*) AS n FROM flights GROUP BY w ORDER BY n DESC, w LIMIT 3
SELECT isodow(day) IN (6, 7) AS weekend, AVG(dep_delay) FROM flights GROUP BY weekend ORDER BY weekend
SELECT COUNT(*) FROM flights WHERE day BETWEEN '2013-06-01' AND DATE '2013-08-31'
SELECT COUNT(*) FROM flights WHERE day >= DATE '2013-03-01' AND day < DATE '2013-03-01' + INTERVAL 2 WEEK
SELECT COUNT(*) FROM flights WHERE day = last_day(day)
SELECT date_diff('day', DATE '2013-01-01', day) // 7 AS week, COUNT(*) FROM flights GROUP BY week ORDER BY week LIMIT 4
SELECT l.airline, COUNT(*) AS n FROM flights f JOIN airlines l ON f.carrier = l.code GROUP BY l.airline ORDER BY n DESC
SELECT l.low_cost, AVG(f.dep_delay) AS d FROM flights f LEFT JOIN airlines l ON f.carrier = l.code GROUP BY l.low_cost ORDER BY l.low_cost NULLS FIRST
SELECT COUNT(*) FROM flights WHERE carrier NOT IN (SELECT code FROM airlines)
SELECT SUM(hours) AS air, AVG(hours) AS mean, MEDIAN(hours) AS mid FROM flights
SELECT origin, ROUND(SUM(hours) / COUNT(*), 2) AS per FROM flights GROUP BY origin ORDER BY origin
SELECT CASE WHEN hours < 1 THEN 'short' WHEN hours < 3.5 THEN 'medium' ELSE 'long' END AS haul, COUNT(*) FROM flights GROUP BY haul ORDER BY haul
SELECT carrier || '-' || origin AS route, COUNT(*) AS n FROM flights GROUP BY route ORDER BY n DESC, route LIMIT 5
SELECT dest_state, COUNT(*) AS n FROM flights GROUP BY dest_state ORDER BY n DESC LIMIT 3 OFFSET 2
SELECT distance < 1000 AS near, SUM(GREATEST(dep_delay, 0)) AS wait FROM flights GROUP BY near ORDER BY near
SELECT COUNT(*) FROM flights WHERE dep_delay IS NULL
SELECT origin, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY dep_delay) AS p90 FROM flights GROUP BY origin ORDER BY origin
WITH d AS (SELECT day, COUNT(*) AS n FROM flights GROUP BY day) SELECT AVG(n), MAX(n), MIN(n) FROM d
WITH d AS (SELECT month(day) AS m, COUNT(*) AS n FROM flights GROUP BY 1) SELECT m, n - LAG(n) OVER (ORDER BY m) AS change FROM d ORDER BY m
WITH d AS (SELECT month(day) AS m, COUNT(*) AS n FROM flights GROUP BY 1) SELECT m, SUM(n) OVER (ORDER BY m) AS running FROM d ORDER BY m
SELECT month(day) AS m, COUNT(*) FILTER (WHERE origin = 'JFK') AS jfk, COUNT(*) FILTER (WHERE origin = 'LGA') AS lga FROM flights GROUP BY m ORDER BY m
SELECT origin, carrier, COUNT(*) AS n FROM flights GROUP BY GROUPING SETS ((origin), (carrier), ()) ORDER BY ALL
SELECT ROUND(100.0 * COUNT_IF(dep_delay <= 0) / COUNT(dep_delay), 2) AS on_time FROM flights
SELECT COUNT(*) FROM flights WHERE regexp_matches(dest_state, '^[A-C]') AND hours >= 2.05
SELECT YEAR(day), MONTHNAME(day), COUNT(*) FROM flights GROUP BY YEAR(day), MONTHNAME(day) ORDER BY COUNT(*) DESC LIMIT 2
-- refused of adult
SELECT EXP(AVG(LN(hours_per_week))) FROM adult
SELECT MODE(education) FROM adult
SELECT MIN(age), MAX(age) FROM adult
SELECT COUNT(DISTINCT occupation) FROM adult
SELECT age, income FROM adult WHERE age > 80
SELECT capital_gain, AVG(capital_gain) FROM adult GROUP BY capital_gain
SELECT sex, ARRAY_AGG(age) FROM adult GROUP BY sex
SELECT BOOL_OR(age > 89) FROM adult
SELECT AVG(age) FROM adult WHERE age > (SELECT AVG(age) FROM adult)
-- refused of flights
SELECT COUNT(*) FROM flights WHERE distance > 800
SELECT f.origin, g.n FROM flights f JOIN (SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin) g USING (origin)
SELECT SUM(distance) FROM flights
SELECT FIRST(carrier) FROM flights
SELECT origin, COUNT(*) FROM flights GROUP BY origin ORDER BY random()
SELECT TOP 5 carrier, COUNT(*) FROM flights GROUP BY carrier

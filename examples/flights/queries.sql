-- Questions about the flights of 1 to 4 January 2015.  In this folder:
--     lapras run queries.sql
-- A statement ends with a semicolon.  Bounds fall on the edges that lapras.toml declares.

-- How many flights are there, and whose are they?
SELECT COUNT(*) FROM flights;
SELECT COUNT(*) FROM flights GROUP BY UNIQUE_CARRIER;
SELECT COUNT(*) FROM flights GROUP BY ORIGIN_STATE_ABR;

-- Delays.  NULL means that the flight never arrived where it was going.
SELECT COUNT(*) FROM flights WHERE ARR_DELAY < 0;
SELECT COUNT(*) FROM flights WHERE ARR_DELAY >= 15;
SELECT COUNT(*) FROM flights WHERE ARR_DELAY >= 60;
SELECT COUNT(*) FROM flights WHERE ARR_DELAY IS NULL;
SELECT COUNT(ARR_DELAY) FROM flights;
SELECT COUNT(*) FROM flights WHERE ARR_DELAY BETWEEN 0 AND 14;
SELECT COUNT(*) FROM flights WHERE NOT (ARR_DELAY < 120);

-- Late by more than an hour, and cancelled or diverted, by carrier.
SELECT COUNT(*) FROM flights WHERE ARR_DELAY >= 60 GROUP BY UNIQUE_CARRIER;
SELECT COUNT(*) FROM flights WHERE ARR_DELAY IS NULL GROUP BY UNIQUE_CARRIER;
SELECT UNIQUE_CARRIER, COUNT(*) FROM flights WHERE ARR_DELAY >= 60 GROUP BY UNIQUE_CARRIER; -- the same: free

-- Distances, in miles.
SELECT COUNT(*) FROM flights WHERE DISTANCE < 600;
SELECT COUNT(*) FROM flights WHERE DISTANCE >= 2000;
SELECT COUNT(*) FROM flights WHERE DISTANCE >= 1000 AND ARR_DELAY >= 30;
SELECT COUNT(*) FROM flights WHERE 400 <= DISTANCE AND DISTANCE < 800 AND ARR_DELAY <= 14;

-- Places and airlines.
SELECT COUNT(*) FROM flights WHERE ORIGIN_STATE_ABR IN ('CA', 'OR', 'WA');
SELECT COUNT(*) FROM flights WHERE ORIGIN_STATE_ABR = 'TX' AND UNIQUE_CARRIER <> 'WN';
SELECT COUNT(*) FROM flights WHERE ORIGIN_STATE_ABR LIKE 'N_' AND ARR_DELAY IS NOT NULL;
SELECT COUNT(*) FROM flights
WHERE UNIQUE_CARRIER IN ('EV', 'MQ', 'OO')    -- regional carriers
  AND (ARR_DELAY >= 45 OR ARR_DELAY IS NULL);
SELECT SUM(CASE WHEN UNIQUE_CARRIER = 'HA' THEN 1 ELSE 0 END) FROM flights WHERE ORIGIN_STATE_ABR = 'HI';
SELECT COUNT(*) FROM flights WHERE ORIGIN_STATE_ABR = 'IL' GROUP BY ARR_DELAY;

-- Asked again, in other words: the earlier answer, for nothing.
SELECT COUNT(*) FROM flights WHERE DISTANCE > 1999;

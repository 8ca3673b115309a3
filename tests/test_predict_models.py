"""Predictors on logs whose truth is known: drift, a new template, a job every hour, dates that move on."""

import math

import numpy as np
import pytest
from query_logs import DAY, DOMAIN, HOUR, START, made, ranges, zipf

from laprasdp.predict.clock import Rhythm, Sliding
from laprasdp.predict.component import good_turing
from laprasdp.predict.forecast import make_forecast
from laprasdp.predict.frequency import Frequency
from laprasdp.predict.markov import MarkovChain, Recall
from laprasdp.predict.mixture import Mixture
from laprasdp.predict.model import Context
from laprasdp.predict.score import score
from laprasdp.predict.template import Splitter
from laprasdp.predict.window import Neighbours, Parts, RangeShapes

S = 200
JOB = "SELECT COUNT(*) FROM t"
COMPONENTS = {
    "frequency": Frequency,
    "recent": lambda: Frequency(50.0),
    "neighbours": lambda: Neighbours(RangeShapes(DOMAIN)),
    "parts": lambda: Parts(RangeShapes(DOMAIN)),
    "rhythm": Rhythm,
    "sliding": lambda: Sliding(RangeShapes(DOMAIN), 500.0),
    "following": lambda: MarkovChain(RangeShapes(DOMAIN)),
    "recall": Recall,
    "mixture": lambda: Mixture(S),
}


def key(text):
    return Splitter().split(text)


def expected(forecast, text):
    return next((one.expected for one in forecast.predictions if one.text == text), 0.0)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("make", COMPONENTS.values(), ids=COMPONENTS)
@pytest.mark.parametrize("lines", [1, 2, 3, 40, 400])
def test_every_predictor_keeps_the_promises_of_the_protocol(make, lines, rng):
    texts = zipf(rng, ranges(30), lines)
    log = made(texts, START + np.arange(lines) * HOUR, [n % 3 for n in range(lines)])
    predictor = make()
    predictor.fit(log)
    assert 0 <= predictor.missing_mass <= 1
    for context in (Context(), Context(START + 30 * DAY, (key(texts[0]), key(texts[-1])))):
        spread = predictor.expected_counts(S, context)
        values = [*spread.known, *spread.new.values()]
        assert spread.known.shape == (len(log.statements),)
        assert min(values) >= 0
        assert spread.total <= S * (1 + 1e-9)
        assert not set(spread.new) & set(log.statements)
        ranked = [value for _, value in spread.ranked(log, 10)]
        assert ranked == sorted(ranked, reverse=True)
        assert ranked == pytest.approx(sorted((v for v in values if v > 0), reverse=True)[:10])


def test_frequency_is_what_decay_and_good_turing_say():
    log = made(["SELECT COUNT(*) FROM t WHERE a < 1"] * 2 + ["SELECT COUNT(*) FROM t WHERE a < 2"])
    model = Frequency(half_life=1.0)
    model.fit(log)
    weights = np.array([0.25, 0.5, 1.0])
    assert good_turing(log, weights) == pytest.approx(1 / 1.75)
    assert model.missing_mass == pytest.approx(1 / 1.75)
    counts = model.expected_counts(70, Context()).known
    assert counts == pytest.approx(70 * (1 - 1 / 1.75) * np.array([0.75, 1.0]) / 1.75)


def test_good_turing_foretells_how_many_statements_are_new(rng):
    texts = zipf(rng, ranges(1500), 3000)
    log = made(texts)
    told = good_turing(log.lines(0, 2500), np.ones(2500))
    before = set(texts[:2500])
    assert told == pytest.approx(np.mean([text not in before for text in texts[2500:]]), abs=0.05)


def recurring(rng):
    return made(zipf(rng, ranges(400), 8000))


def drifting(rng):
    """What is popular moves on by one statement every 40 lines."""
    texts, steps = ranges(600), np.minimum(rng.zipf(1.6, size=8000), 200)
    return made([texts[(place // 40 + step) % 600] for place, step in enumerate(steps.tolist())])


def growing(rng):
    """A new template takes three of ten lines from half-way on."""
    lines, fresh = (
        zipf(rng, ranges(400), 8000),
        [f"SELECT COUNT(*) FROM t WHERE b >= {5 * n}" for n in range(19)],
    )
    for place in range(4000, 8000, 10):
        lines[place : place + 3] = [fresh[n] for n in rng.integers(19, size=3)]
    return made(lines)


def hourly(rng, texts=300, days=20, busiest=40):
    """A job at each hour, among many lines by day and few by night."""
    lines = []
    for hour in range(24 * days):
        lines.append((START + hour * HOUR, JOB))
        number = busiest if 8 <= hour % 24 < 18 else busiest // 20 or 1
        asked = zipf(rng, ranges(texts), number)
        lines += [(START + (hour + rng.random()) * HOUR, text) for text in asked]
    lines.sort()
    return made([text for _, text in lines], [at for at, _ in lines])


@pytest.mark.parametrize("write", [recurring, drifting, growing, hourly])
def test_calibration_error_is_below_two_points(write, rng):
    found = score(lambda: Mixture(S), write(rng), S, windows=10)
    assert found.windows >= 9
    assert found.calibration_error < 0.02
    for size in found.sizes:
        assert size.expected_overlap == pytest.approx(size.overlap, abs=0.05)
    assert found.expected_missing == pytest.approx(found.missing, abs=0.02)


def test_a_predictor_that_is_sure_of_the_wrong_thing_is_not_calibrated(rng):
    log = made(zipf(rng, ranges(400), 3000) + zipf(rng, ranges(400, 500), 1000))
    assert score(Frequency, log, S).calibration_error > 0.1


def test_drift_is_followed_within_one_window(rng):
    """All statements change; one window later they are foretold as by one who had only seen the new ones."""
    old, new = ranges(100), ranges(100, 700)
    lines, after = zipf(rng, old, 4000) + zipf(rng, new, S), zipf(rng, new, 10 * S)

    def overlap(predictor, known):
        predictor.fit(made(known))
        chosen = {one.text for one in make_forecast(predictor, made(known), S, 50).predictions}
        return np.mean([text in chosen for text in after])

    best = overlap(Frequency(), lines[-S:])
    assert best > 0.6
    assert overlap(Mixture(S), lines) > 0.9 * best
    assert overlap(Frequency(), lines) < 0.5 * best


def test_a_new_template_counts_as_much_as_it_is_asked(rng):
    fresh = [f"SELECT COUNT(*) FROM t WHERE b >= {-20 + 5 * n}" for n in range(10)]
    lines = zipf(rng, ranges(60), 4000)
    for place in range(2000, 4000, 10):
        lines[place : place + 3] = [fresh[n] for n in rng.integers(10, size=3)]
    log = made(lines)
    shares = {}
    for name, predictor in (("mixture", Mixture(S)), ("frequency", Frequency())):
        predictor.fit(log)
        forecast = make_forecast(predictor, log, S, 500)
        shares[name] = sum(expected(forecast, text) for text in fresh) / S
    assert shares["mixture"] == pytest.approx(0.3, abs=0.02)
    assert shares["frequency"] == pytest.approx(0.15, abs=0.02)


def test_a_job_every_hour_weighs_more_at_night(rng):
    log = hourly(rng, texts=50, days=28, busiest=30)
    predictor = Mixture(100)
    predictor.fit(log)
    flat = Frequency()
    flat.fit(log)
    end = START + 28 * DAY

    def told(at, horizon, predictor=predictor):
        counts = predictor.expected_counts(horizon, Context(at)).known
        return counts[log.statements.index(key(JOB))]

    assert told(end, 16) == pytest.approx(8, abs=2)  # eight hours of the night: the job and one more
    assert told(end, 16, flat) < 2
    assert told(end + 8 * HOUR, 310) == pytest.approx(10, rel=0.3)  # ten hours of the day


def test_a_window_of_dates_moves_on(rng):
    def last_week(day):
        first, last = (np.datetime64("2024-01-01") + d for d in (day - 7, day))
        return f"SELECT COUNT(*) FROM t WHERE d >= DATE '{first}' AND d < DATE '{last}'"

    lines = []
    for day in range(10, 60):
        lines += [(START + (day + 0.3 + n / 100) * DAY, last_week(day)) for n in range(3)]
        noise = zipf(rng, ranges(40), 7)
        lines += [(START + (day + 0.3 + rng.random() / 9) * DAY, text) for text in noise]
    lines.sort()
    log = made([text for _, text in lines], [at for at, _ in lines])
    predictor = Mixture(10)
    predictor.fit(log)
    forecast = make_forecast(predictor, log, 10, 20, Context(START + 60.3 * DAY))
    assert last_week(60) not in {text for _, text in lines}
    assert expected(forecast, last_week(60)) == pytest.approx(3, abs=0.75)


def test_the_next_range_follows_from_the_last_one():
    sweep = [f"SELECT COUNT(*) FROM t WHERE a >= {n} AND a < {n + 10}" for n in range(60)]
    log = made(sweep * 3, sessions=[n // 60 for n in range(180)])
    model = MarkovChain(RangeShapes(DOMAIN))
    model.fit(log)
    spread = model.shares(1, Context(session=(key(sweep[20]),)))
    assert log.statements[int(np.argmax(spread.known))] == key(sweep[21])
    # Never left in the log, but moves as all others do:
    log = made([*sweep, sweep[5]], sessions=[*[0] * 60, 1])
    log = made([*sweep[:30], *sweep[31:], sweep[30]], sessions=[*[0] * 30, *[1] * 29, 2])
    model.fit(log)
    spread = model.shares(1, Context(session=(key(sweep[30]),)))
    assert log.statements[int(np.argmax(spread.known))] == key(sweep[31])


def test_neighbours_are_one_step_away_and_parts_come_together():
    near = Neighbours(RangeShapes(DOMAIN))
    near.fit(made(["SELECT COUNT(*) FROM t WHERE b >= -20 AND b < -10"]))
    texts = {one.text for one in near.shares(1, Context()).new}
    near.fit(made(["SELECT COUNT(*) FROM t WHERE b >= -20.0 AND b < -10.00"]))
    assert {one.text for one in near.shares(1, Context()).new} == texts
    assert texts == {
        f"SELECT COUNT(*) FROM t WHERE b >= {low} AND b < {high}"
        for low, high in [(-15, -10), (-20, -15), (-20, -5), (-15, -5)]
    }
    parts = Parts(RangeShapes(DOMAIN))
    parts.fit(
        made([f"SELECT COUNT(*) FROM t WHERE a BETWEEN {n} AND {n + 9} AND s = 'x{n}'" for n in (1, 2)])
    )
    spread = parts.shares(1, Context())
    assert {one.literals for one in spread.new} == {("1", "10", "'x2'"), ("2", "11", "'x1'")}
    assert spread.known == pytest.approx([0.25, 0.25])


def test_chances_are_learned_from_bursts_and_from_what_came(rng):
    steady = made(zipf(rng, ranges(200), 6000))
    bursts = made([text for text in zipf(rng, ranges(200), 300) for _ in range(20)])
    shapes, chances = [], []
    for log in (steady, bursts):
        predictor = Mixture(S)
        predictor.fit(log)
        shapes.append(predictor.clumping)
        chances.append(predictor.chances(np.array([0.0, 0.01, 1.0, 100.0])))
    assert shapes[0] >= 2
    assert shapes[1] < 1
    assert chances[0][2] == pytest.approx(1 - math.exp(-1), abs=0.1)
    assert chances[1][2] < 0.3
    for chance in chances:
        assert chance[0] == 0
        assert list(chance) == sorted(chance)
    assert chances[0][3] > 0.9
    assert 0.3 < chances[1][3] < chances[0][3]

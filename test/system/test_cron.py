"""Periodic times, compared with the calendar and the zones of Python: thousands of texts and moments, most of them
around the changes of clocks."""
import calendar
import datetime
import random
import subprocess
from zoneinfo import ZoneInfo

import pytest

from stack import BUILD

pytestmark = pytest.mark.plain

UTC = datetime.timezone.utc
MINUTE, HOUR, DAY = (datetime.timedelta(**{unit: 1}) for unit in ('minutes', 'hours', 'days'))
ZONES = ['UTC', 'Europe/Paris', 'Europe/Dublin', 'America/New_York', 'America/St_Johns', 'America/Santiago',
         'Australia/Lord_Howe', 'Asia/Kathmandu', 'Africa/Casablanca', 'Antarctica/Troll', 'Pacific/Apia', 'Pacific/Chatham']
CASES = 400


def local(moment, zone):
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def first_moment(wall, zone):
    """When a clock of the zone first shows `wall`, or what is left of the future after it jumped over that."""
    moment = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if local(moment, zone) == wall:
        return moment
    moment = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)  # before the jump
    while local(moment, zone) < wall:
        moment += MINUTE
    return moment


def walls(text, today):
    """Times of the day that the text may mean around a date, in order."""
    hour, minute = int(text[-4:-2]), int(text[-2:])
    for day in (today + DAY * number for number in range(-2, 800)):
        last = calendar.monthrange(day.year, day.month)[1]
        if (text[0] == 'D' or (text[0] == 'W' and day.isoweekday() == int(text[1]))
                or (text[0] == 'M' and day.day == min(int(text[1:3]), last))
                or (text[0] == 'Y' and (day.month, day.day) == (int(text[1:3]), int(text[3:5])))):
            yield datetime.datetime(day.year, day.month, day.day, hour, minute)


def next_hourly(minute, after, zone):
    moment = after.replace(second=0) + MINUTE
    while True:
        now, before = local(moment, zone), local(moment - MINUTE, zone)
        if now.minute == minute:
            return moment
        jump = now - before - MINUTE
        if datetime.timedelta(0) < jump < HOUR:
            left_out = (before + MINUTE * number for number in range(1, jump // MINUTE + 1))
            if any(wall.minute == minute for wall in left_out):
                return moment
        moment += MINUTE


def expected(text, after, zone):
    if text[0] == 'H':
        return next_hourly(int(text[1:]), after, zone)
    moments = (first_moment(wall, zone) for wall in walls(text, local(after, zone).date()))
    return next(moment for moment in moments if moment > after)


def changes(zone, year):
    """The hours of a year in which the clock is changed."""
    start = datetime.datetime(year, 1, 1, tzinfo=UTC)
    hours = [start + HOUR * number for number in range(0, 366 * 24)]
    return [hour for hour, after in zip(hours, hours[1:])
            if hour.astimezone(zone).utcoffset() != after.astimezone(zone).utcoffset()]


def a_text(choice, wall):
    """A text that means something near a time of the day."""
    wall += MINUTE * choice.randint(-90, 90)
    if choice.random() < 0.2:
        wall = datetime.datetime(wall.year, choice.randint(1, 12), choice.randint(1, 28), choice.randrange(24), choice.randrange(60))
    day = min(wall.day, calendar.monthrange(2025, wall.month)[1])
    last = choice.choice([wall.day, 31]) if wall.day >= 28 else wall.day
    return choice.choice([f'Y{wall.month:02}{day:02}{wall:%H%M}', f'M{last:02}{wall:%H%M}', f'W{wall.isoweekday()}{wall:%H%M}',
                          f'D{wall:%H%M}', f'H{wall:%M}'])


@pytest.mark.parametrize('name', ZONES)
def test_the_calendar_is_that_of_python(name):
    choice, zone = random.Random(name), ZoneInfo(name)
    found = [moment for year in (2011, 2026, 2061) for moment in changes(zone, year)]
    cases = []
    for _ in range(CASES):
        if found and choice.random() < 0.7:
            after = choice.choice(found) + datetime.timedelta(seconds=choice.choice([0, 1, 59, 1800, 3599, 3600, 5400, -3600, -86400]))
            after += MINUTE * choice.choice([0, 0, choice.randint(-300, 300)])
        else:
            after = datetime.datetime(2001, 1, 1, tzinfo=UTC) + datetime.timedelta(seconds=choice.randrange(96 * 365 * 86400))
        cases.append((a_text(choice, local(after, zone)), after))
    lines = ''.join(f'{text} {int(after.timestamp())}\n' for text, after in cases)
    done = subprocess.run([BUILD / 'test/system/cron_lines', name], input=lines, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    answers = done.stdout.split()
    assert len(answers) == len(cases)
    for (text, after), answer in zip(cases, answers):
        assert datetime.datetime.fromtimestamp(int(answer), UTC) == expected(text, after, zone), (name, text, after.isoformat())

"""Words of texts that are within objects and lists of a content: what matches against a naive reading, where excerpts are, what is refused, and a change of the declaration."""
import random

import pytest

from schema import Schemas

STACK = {'workers': 2}
WITHIN = {'text': ['title', ['body', 'text'], ['sections', 'heading'], ['a "b\'\\$$', 'é']]}
MAIN = {'singleton': True, 'fields': {'words': WITHIN}}
VOCABULARY = ['red', 'green', 'blue', 'apple', 'pear', 'Été', '42']
FIND = {'c': 'Page', 'i': 'Main'}


@pytest.fixture(scope='module')
def schemas(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    schemas.apply('lab', {'Page': {'items': {'Main': MAIN}}})
    return schemas


@pytest.fixture
def lab(schemas):
    schemas.stack.clear('lab', 'Page')
    return schemas.stack


def put(stack, id_, content):
    stack.put('lab', {'c': 'Page', 'id': id_, 'items': [{'c': 'Main', 'j': content}]})


def strings(value):
    """A string, or the strings of a list."""
    return [value] if isinstance(value, str) else [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def at(content, *path):
    """The texts that the path leads to; a list on the way, or at its end, stands for its elements."""
    values, has_list = [content], False
    for name in path:
        has_list |= any(isinstance(one, list) for one in values)
        values = [inner[name] for one in values for inner in (one if isinstance(one, list) else [one]) if isinstance(inner, dict) and name in inner]
    has_list |= any(isinstance(one, list) for one in values)
    return [text for one in values for text in strings(one)]


def words_of(content):
    texts = [text for path in (['title'], ['body', 'text'], ['sections', 'heading'], ['a "b\'\\$$', 'é']) for text in at(content, *path)]
    return {word.lower() for text in texts for word in text.split()}


def some_text(chance):
    return ' '.join(chance.choices(VOCABULARY, k=chance.randint(0, 4)))


def some_content(chance):
    text = lambda: chance.choice([some_text(chance), some_text(chance), some_text(chance), [some_text(chance), 7, some_text(chance)], 5, None, {'text': 'red'}])  # noqa: E731
    content = {'title': text(), 'body': chance.choice([{'text': text()}, {'text': text()}, {'other': 'red'}, 'red', [{'text': text()}, 'red', {'text': text()}], None]),
               'sections': chance.choice([[{'heading': text()} for _ in range(chance.randint(0, 3))], {'heading': text()}, 'red', [['red'], [{'heading': 'red'}]]]),
               'a "b\'\\$$': {'é': text()}, 'heading': 'red', 'text': 'red'}
    return {name: value for name, value in content.items() if chance.random() < 0.8}


def found(stack, word, **more):
    return stack.op('lab', 'find', {**FIND, 'where': [{'f': 'words', 't': 'match', 'v1': word}], **more})['out']


@pytest.mark.parametrize('seed', [3, pytest.param(4, marks=pytest.mark.again)])
def test_a_match_is_what_the_texts_say(lab, seed):
    chance = random.Random(seed)
    for _ in range(4):
        contents = {f'p{number:02}': some_content(chance) for number in range(25)}
        for id_, content in contents.items():
            put(lab, id_, content)
        for word in VOCABULARY:
            expected = [id_ for id_, content in sorted(contents.items()) if word.lower() in words_of(content)]
            assert found(lab, word)['ids'] == expected, word


def test_excerpts_are_of_the_places_that_the_paths_lead_to(lab):
    put(lab, 'a', {'title': 'one red', 'body': {'text': 'two red'}, 'sections': [{'heading': 'three red'}, {'heading': 'blue'}], 'text': 'red'})
    row, = found(lab, 'red', want='items', marks='words')['items']
    assert row['marks'] == {'title': [['one ', 'red', '']], 'body.text': [['two ', 'red', '']], 'sections.heading': [['three ', 'red', '\nblue']]}


def test_the_first_members_weigh_most(lab):
    put(lab, 'a', {'sections': [{'heading': 'red'}]})
    put(lab, 'b', {'body': {'text': 'red'}})
    put(lab, 'c', {'title': 'red'})
    assert found(lab, 'red', order='-words')['ids'] == ['c', 'b', 'a']


@pytest.mark.parametrize('text', [[[]], [['a', 5]], [['a', '']], [['x'] * 9], [['a', 'b'], ['a', 'b']], [{'at': ['a']}], [['a', ['b']]]])
def test_a_wrong_declaration_is_refused(schemas, text):
    assert '.text[' in schemas.set('lab', {'Page': {'items': {'Main': {'singleton': True, 'fields': {'words': {'text': text}}}}}}, status=1)


def test_another_path_is_applied(schemas, lab):
    put(lab, 'a', {'title': 'red', 'body': {'text': 'green', 'more': 'blue'}})
    schemas.apply('lab', {'Page': {'items': {'Main': {'singleton': True, 'fields': {'words': {'text': [['body', 'more']]}}}}}})
    assert found(lab, 'blue')['ids'] == ['a'] and not found(lab, 'red')['ids'] and not found(lab, 'green')['ids']
    schemas.apply('lab', {'Page': {'items': {'Main': MAIN}}})
    assert found(lab, 'green')['ids'] == ['a'] and not found(lab, 'blue')['ids']

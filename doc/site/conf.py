"""Sphinx: the pages as scripts/build-site lays them out."""
from pathlib import Path
from re import search, sub

from pygments.lexers import JavascriptLexer, TextLexer

project = 'stampd'
version = search(r'AC_INIT\(\[stampd\], \[(.*?)\]', (Path(__file__).parents[2] / 'configure.ac').read_text())[1]
root_doc = 'index'
extensions = ['myst_parser']
myst_heading_anchors = 6  # as check-docs knows them
suppress_warnings = ['misc.highlighting_failure']  # an example of JSON may have "…"
smartquotes = False
html_theme = 'furo'
html_title = f'stampd {version}'
html_static_path = ['static']
html_css_files = ['site.css']
templates_path = ['templates']
html_copy_source = False
html_use_index = False
html_show_copyright = False


def finish(app, _error):
    """Debian's Furo imports a style sheet by a path of the host (site.css has what the pages need of it)."""
    styles = Path(app.outdir) / '_static/styles/furo.css'
    styles.write_text(sub('@import url\\(/.*?;', '', styles.read_text()))


def setup(app):
    app.connect('build-finished', finish)
    app.add_lexer('browser', JavascriptLexer)
    app.add_lexer('csv', TextLexer)

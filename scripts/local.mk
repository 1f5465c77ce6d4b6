# What the house demands of its files: run by make check, on any tree, in git or not.
HOUSE_CHECKS += scripts/check-layers scripts/check-settings scripts/check-style scripts/check-docs scripts/check-refusals scripts/check-names scripts/check-web scripts/check-claims \
	test/house/test_checks.sh test/house/test_completion.sh test/house/test_release_pages.sh test/house/test_release.sh test/house/test_bill_of_materials.sh test/house/test_manuals.sh
EXTRA_DIST += $(HOUSE_CHECKS) test/house/test_hardening.sh scripts/c-text.awk scripts/setting-claims.awk scripts/list-files scripts/source-map scripts/check-dist \
	.clang-format .editorconfig CONTRIBUTING.md

# Folders of documents, tests and tools that are not built: a release gets the files that git knows.
DIST_FOLDERS = container debian doc findings src/python src/web test/attacks test/system test/vectors test/bench test/sql test/race test/model test/mutants test/fuzz test/history test/packages scripts
dist-hook:
	@cd $(srcdir) && scripts/list-files $(DIST_FOLDERS) | while IFS= read -r file; do \
		$(MKDIR_P) "$(abs_builddir)/$(distdir)/$${file%/*}" && \
		cp -p "$$file" "$(abs_builddir)/$(distdir)/$$file" || exit 1; \
	done
	@$(srcdir)/scripts/dist-web $(srcdir) $(distdir)/web $(abs_builddir)/web
	@$(srcdir)/scripts/check-dist $(srcdir) $(distdir)

# The pages and the client library, where they were built: from a release always, from a checkout by scripts/build-web PACKAGE BUILD/web/PACKAGE.
webdir = $(pkgdatadir)/web
sitedir = $(docdir)/html
install-data-local:
	@for page in client console catalogue; do \
		from=$(srcdir)/web/$$page; \
		[ -d "$$from" ] || from=web/$$page/dist; \
		if [ -d "$$from" ]; then \
			$(MKDIR_P) "$(DESTDIR)$(webdir)/$$page" && $(INSTALL_DATA) "$$from"/* "$(DESTDIR)$(webdir)/$$page" || exit 1; \
		else \
			echo "$$page is not installed: it was not built (scripts/build-web, which needs npm)"; \
		fi; \
	done
	@test ! -e site/dist/index.html || { $(MKDIR_P) "$(DESTDIR)$(sitedir)" && cp -R site/dist/. "$(DESTDIR)$(sitedir)"; }
uninstall-local:
	rm -rf "$(DESTDIR)$(webdir)"
	test ! -e site/dist/index.html || rm -rf "$(DESTDIR)$(sitedir)"
clean-local:
	rm -rf deb site web web.log

# The documentation as a site, in site/dist; without Sphinx nothing is done.
.PHONY: site
site:
	@$(srcdir)/scripts/build-site $(abs_builddir)/site || test $$? = 77

# The house checks ask which programs this build has.
if THUMBNAILS
AM_TESTS_ENVIRONMENT = STAMPD_THUMBNAILS=yes; export STAMPD_THUMBNAILS;
else
AM_TESTS_ENVIRONMENT = STAMPD_THUMBNAILS=no; export STAMPD_THUMBNAILS;
endif

# test_hardening asks what configure has chosen; a build with the sanitizers is not hardened.
if HARDENED
HOUSE_CHECKS += test/house/test_hardening.sh
AM_TESTS_ENVIRONMENT += HARDENED=yes; HARDEN_CFLAGS='$(HARDEN_CFLAGS)'; export HARDENED HARDEN_CFLAGS;
endif

# Where bash-completion looks for the completion of a program, by its name.
bashcompletiondir = $(datarootdir)/bash-completion/completions
dist_bashcompletion_DATA = scripts/completions/stampctl

# The map of the sources, for newcomers.
.PHONY: map
map:
	@$(srcdir)/scripts/source-map $(srcdir)

# The module of nginx.  nginx's own configure finds out what its headers need to know; with --with-compat, which Debian's
# nginx has, a module fits whatever else nginx was built with.
EXTRA_DIST += nginx/module/ngx_http_stampd_module.c nginx/module/ngx_http_stampd_maps.c nginx/module/ngx_http_stampd_maps.h
HEADERS_OF_NGINX = nginx/module/headers
MODULE_OF_NGINX = nginx/module/ngx_http_stampd_module.so
FILES_OF_NGINX = nginx/module/ngx_http_stampd_module.c nginx/module/ngx_http_stampd_maps.c src/segment/public_view.c src/base/bytes.c src/base/clock.c \
	src/base/coding/hex.c src/base/coding/siphash.c
INCLUDES_OF_NGINX = -Isrc -I$(abs_builddir)/$(HEADERS_OF_NGINX) -I$(NGINX_SOURCE)/src/core -I$(NGINX_SOURCE)/src/event \
	-I$(NGINX_SOURCE)/src/http -I$(NGINX_SOURCE)/src/http/modules -I$(NGINX_SOURCE)/src/http/v2 -I$(NGINX_SOURCE)/src/os/unix

if NGINX_MODULE
nginxmodule_DATA = $(MODULE_OF_NGINX)
endif

$(HEADERS_OF_NGINX)/ngx_auto_config.h:
	$(AM_V_GEN)rm -rf $(HEADERS_OF_NGINX) && $(MKDIR_P) nginx/module && cd $(NGINX_SOURCE) && \
		./configure --with-compat --with-http_ssl_module --with-http_v2_module --with-threads \
		--builddir=$(abs_builddir)/$(HEADERS_OF_NGINX) >$(abs_builddir)/nginx/module/configure.log 2>&1 || \
		{ tail -n 5 $(abs_builddir)/nginx/module/configure.log; exit 1; }

$(MODULE_OF_NGINX): $(HEADERS_OF_NGINX)/ngx_auto_config.h $(FILES_OF_NGINX) nginx/module/ngx_http_stampd_maps.h src/segment/public_view.h src/segment/slots.h \
		src/segment/segment.h src/segment/board.h src/edge/mapping.h
	$(AM_V_CCLD)cd $(srcdir) && $(CC) -std=gnu11 -D_GNU_SOURCE $(WARN_CFLAGS) -Wno-unused-parameter -Wno-missing-field-initializers \
		$(CPPFLAGS) $(CFLAGS) -fPIC -fvisibility=hidden -shared $(LDFLAGS) -Wl,-z,relro -Wl,-z,now $(INCLUDES_OF_NGINX) \
		-o $(abs_builddir)/$@.new $(FILES_OF_NGINX) && mv $(abs_builddir)/$@.new $(abs_builddir)/$@

clean-local: clean-module-of-nginx
.PHONY: clean-module-of-nginx
clean-module-of-nginx:
	rm -rf $(HEADERS_OF_NGINX) nginx/module/configure.log $(MODULE_OF_NGINX)

SELECT namespace FROM installation

// Stands in for the toolkit's file of this name, which judges the host compiler.
#pragma once
